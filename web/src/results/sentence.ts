// What a sentence says beside its numbers: which row and which column it speaks of.

import type { Kind } from "./columns";
import type { Cell, Row } from "./result";

/** The sentence at a place of a text, and where it begins. */
export function sentenceAt(text: string, place: number): { sentence: string; from: number } {
  const ends = [...text.matchAll(/[.!?](?=\s)|[。！？；;\n]/g)].map(({ index }) => index);
  const from = Math.max(-1, ...ends.filter((end) => end < place)) + 1;
  const to = Math.min(text.length, ...ends.filter((end) => end >= place).map((end) => end + 1));
  return { sentence: text.slice(from, to), from };
}

/** How many cells of a row, but for the one at `column`, a text has. */
export function cellsTold(text: string, row: Row, column: number, kinds: readonly Kind[], isRow: boolean): number {
  return row.filter((cell, at) => at !== column && isTold(text, cell, kinds[at] ?? "text", isRow)).length;
}

/**
 * Which row a place of a text is about: the one whose names stand nearest before it, or nearest behind it where none
 * stands before. Null: it names no row. Several: rows with the same name.
 */
export function rowsMeant(
  text: string,
  place: number,
  rows: readonly Row[],
  kinds: readonly Kind[],
): ReadonlySet<number> | null {
  const named = rows.flatMap((row, at) =>
    row.flatMap((cell, column) => {
      const name = nameIn(cell, kinds[column] ?? "text", false);
      return name === null ? [] : placesOf(text, name).map((start) => ({ at, start }));
    }),
  );
  const before = named.filter(({ start }) => start <= place);
  const nearest = before.length
    ? Math.max(...before.map(({ start }) => start))
    : Math.min(...named.map(({ start }) => start));
  return named.length ? new Set(named.filter(({ start }) => start === nearest).map(({ at }) => at)) : null;
}

function isTold(text: string, cell: Cell, kind: Kind, isRow: boolean): boolean {
  const name = nameIn(cell, kind, isRow);
  return name !== null && placesOf(text, name).length > 0;
}

/** What a cell's row is called by, or null. A number beside another proves nothing in a sentence. In a row of a table it does. */
function nameIn(cell: Cell, kind: Kind, isRow: boolean): string | null {
  if (cell === null || typeof cell === "boolean" || typeof cell === "object") return null;
  if ((kind === "number" || kind === "id") && !isRow) return null;
  const name = String(cell).trim();
  return name.length >= 2 || (name && (isRow || HAN.test(name))) ? name : null;
}

/** Where a text has these words, not as a part of longer ones. */
function placesOf(text: string, words: string): number[] {
  const whole = text.toLowerCase();
  const wanted = words.toLowerCase();
  const found = [];
  for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + 1)) {
    if (!isInside(whole, at) && !isInside(whole, at + wanted.length)) found.push(at);
  }
  return found;
}

const isInside = (text: string, at: number) => WORD.test(text[at - 1] ?? " ") && WORD.test(text[at] ?? " ");

/** Whether a text has a word of a column's name: `launch` for `launches_count`. */
export function namesColumn(text: string, column: string): boolean {
  const told = text.toLowerCase();
  return wordsOf(column).some((word) => (typeof word === "string" ? told.includes(word) : word.test(told)));
}

const words = new Map<string, (string | RegExp)[]>();

/** What a text has that names a column. Asked for each number, and the same for all of them. */
function wordsOf(column: string): (string | RegExp)[] {
  const known = words.get(column);
  if (known) return known;
  const all = column
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}]+/u);
  const made = all.flatMap((word): (string | RegExp)[] => {
    if (HAN.test(word)) return word.length >= 2 ? [word] : [];
    return word.length >= 3 && !COMMON.has(word) ? [new RegExp(`(?<![a-z])${stem(word)}`)] : [];
  });
  words.set(column, made);
  return made;
}

const HAN = /\p{Script=Han}/u;
const WORD = /[a-z0-9_]/;
const COMMON = new Set("all and avg count for has max min name num number per sum the total value".split(" "));
const stem = (word: string) => (word.length > 4 ? word.replace(/(?:ies|es|s|y)$/, "") : word);
