import { expect, test } from "vitest";
import type { NoteView } from "../api/types";
import { groupNotes } from "./notes";

const note = (text: string, table: string | null = null, column: string | null = null): NoteView => ({
  text,
  code: "",
  values: {},
  table,
  column,
});

test("a note is told once, with all columns that it is on", () => {
  const notes = [note("in €", "a", "x"), note("in €", "a", "y"), note("in $", "a", "z"), note("A sheet is left out.")];
  expect(groupNotes(notes, 1).map(({ note: { text }, on }) => [text, on])).toEqual([
    ["in €", ["x", "y"]],
    ["in $", ["z"]],
    ["A sheet is left out.", []],
  ]);
});

test("a note on a table names it where there are several", () => {
  const notes = [note("Read as GB18030", "a"), note("Read as GB18030", "b"), note("Read as GB18030", "a")];
  expect(groupNotes(notes, 2).map(({ on }) => on)).toEqual([["a", "b"]]);
  expect(groupNotes(notes, 1).map(({ on }) => on)).toEqual([[]]);
});
