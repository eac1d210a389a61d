// What a sentence says beside its numbers: which row and which column it speaks of.

import type { Kind } from "./columns";
import type { Cell, Row } from "./result";

/** The sentence at a place of a text. */
export function sentenceAt(text: string, place: number): string {
  const ends = [...text.matchAll(/[.!?](?=\s)|[。！？；;\n]/g)].map(({ index }) => index);
  const from = Math.max(-1, ...ends.filter((end) => end < place)) + 1;
  const to = Math.min(text.length, ...ends.filter((end) => end >= place).map((end) => end + 1));
  return text.slice(from, to);
}

/** How many cells of a row, but for the one at `column`, a text has. */
export function cellsTold(text: string, row: Row, column: number, kinds: readonly Kind[], isRow: boolean): number {
  return row.filter((cell, at) => at !== column && isTold(text, cell, kinds[at] ?? "text", isRow)).length;
}

function isTold(text: string, cell: Cell, kind: Kind, isRow: boolean): boolean {
  if (cell === null || typeof cell === "boolean" || typeof cell === "object") return false;
  const wanted = String(cell).trim();
  // A number beside another proves nothing in a sentence. In a row of a table it does.
  if ((kind === "number" || kind === "id") && !isRow) return false;
  if (!wanted || (wanted.length < 2 && !isRow && !HAN.test(wanted))) return false;
  return holds(text, wanted);
}

/** Whether a text has these words, not as a part of longer ones. */
function holds(text: string, words: string): boolean {
  const whole = text.toLowerCase();
  const wanted = words.toLowerCase();
  for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + 1)) {
    const end = at + wanted.length;
    if (!isInside(whole, at) && !isInside(whole, end)) return true;
  }
  return false;
}

const isInside = (text: string, at: number) => WORD.test(text[at - 1] ?? " ") && WORD.test(text[at] ?? " ");

/** Whether a text has a word of a column's name: `launch` for `launches_count`. */
export function namesColumn(text: string, column: string): boolean {
  const told = text.toLowerCase();
  const words = column.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().split(/[^\p{L}]+/u);
  return words.some((word) => {
    if (HAN.test(word)) return word.length >= 2 && told.includes(word);
    return word.length >= 3 && !COMMON.has(word) && new RegExp(`(?<![a-z])${stem(word)}`).test(told);
  });
}

const HAN = /\p{Script=Han}/u;
const WORD = /[a-z0-9_]/;
const COMMON = new Set("all and avg count for has max min name num number per sum the total value".split(" "));
const stem = (word: string) => (word.length > 4 ? word.replace(/(?:ies|es|s|y)$/, "") : word);
