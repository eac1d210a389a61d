// Files that are dropped on the page or attached.

export const upload = {
  "upload.attach": "Attach a file to ask",
  "upload.dropHere": "Drop files here to ask them",
  "upload.title": "Ask a file",
  "upload.about": "The file becomes a source, under the name below. Your next question asks it. Settings has all sources, also to remove them.",
  "upload.aboutAll": "Each file becomes a source, under a name of its own. Your next question asks the last one. Settings has all sources, also to remove them.",
  "upload.titleOf": "Ask a file: {n} of {count}",
  "upload.unknown": "{file} cannot be asked. Files that can: CSV, TSV, Parquet, Excel, JSON and SQLite.",
  "upload.encoding": "Encoding",
  "upload.encodingFound": "Found automatically",
  "upload.exists": "There is a file {file} already, the source {source}, uploaded on {at}. Replace it with the new one, and conversations on it ask the new data; or keep both, and the new one is called {other}.",
  "upload.replace": "Replace",
  "upload.keepBoth": "Keep both",
  "upload.leave": "Skip this file",
  "upload.added": "The next question asks {name}.",
  "upload.asks": "Asks {name} next",
  "upload.leaveSource": "Do not ask {name}",
};
