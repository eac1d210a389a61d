// What is told of how files were read: each note once, with all tables or columns that it is on.

import type { NoteView } from "../api/types";

export interface NoteGroup {
  note: NoteView;
  /** The columns, or the tables where there are several, that it is on; empty: on all that there is. */
  on: string[];
}

export function groupNotes(notes: readonly NoteView[], tables: number): NoteGroup[] {
  const found = new Map<string, NoteGroup>();
  for (const note of notes) {
    const key = JSON.stringify([note.text, note.column === null]);
    const group = found.get(key) ?? { note, on: [] };
    found.set(key, group);
    const where = note.column ?? (tables > 1 ? note.table : null);
    if (where !== null && !group.on.includes(where)) group.on.push(where);
  }
  return [...found.values()];
}
