// Messages of the frame: list, header, palette, settings.

export const shell = {
  "format.ms": "{n} ms",
  "format.seconds": "{n} s",
  "format.minutes": "{m} min {s} s",
  "shell.skip": "Go to the question",
  "shell.conversations": "Conversations",
  "shell.openList": "Open the list of conversations",
  "shell.close": "Close",
  "shell.new": "New conversation",
  "shell.untitled": "Untitled",
  "shell.settings": "Settings",
  "shell.retry": "Try again",
  "shell.unknown": "There is no page here.",
  "shell.home": "Go to the start",
  "shell.broken": "This part of the page failed: {reason}",
  "shell.inspector": "Inspector",
  "shell.resize": "Width of the inspector",
};
