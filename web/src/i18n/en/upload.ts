// What stands where files are dropped or attached. All else comes with the dialog: `files`.

export const upload = {
  "upload.attach": "Attach files",
  "upload.file": "Upload a file …",
  "upload.own": "Ask a file of your own: drop it here, or choose one",
  "upload.dropHere": "Drop files here to chat with them",
  "upload.asks": "Asks {name} next",
  "upload.leaveSource": "Do not ask {name}",
};
