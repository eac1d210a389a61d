// Messages of a query that is read, edited and tried. Ids begin with `sql.`.

export const sql = {
  "sql.sqlOf": "SQL of {label}",
  "sql.outside": "It cannot be edited here: another application ran it, and Longthread does not know its database.",
  "sql.edit": "Edit the SQL",
  "sql.editAbout": "You can change the query and run it. The conversation stays as it is.",
  "sql.readOnly": "This page is read-only: the query cannot be edited here.",
  "sql.editNote": "The result comes below this one. The conversation stays as it is.",
  "sql.reset": "Reset",
  "sql.run": "Run",
  "sql.running": "Running …",
  "sql.tried": "{label}, edited",
  "sql.triedAbout": "Not part of the conversation yet: what was asked later stays.",
  "sql.triedCut": "The first {n} rows. Go on from here to have them all.",
  "sql.goOn": "Go on from here",
  "sql.goingOn": "A moment …",
  "sql.discard": "Discard",
};
