// Whether a number that is written is a cell: the same, or the cell rounded as it is written.

import { type Decimal, decimal, isRounded, same, shifted } from "./decimal";
import type { Numeral } from "./numerals";
import type { Cell } from "./result";

/** The number in a cell; `percent` for a text such as `94.9%`. */
export interface CellNumber {
  readonly number: Decimal;
  readonly percent: boolean;
}

export type Worth = "same" | "rounded" | null;

export function cellNumber(cell: Cell): CellNumber | null {
  if (typeof cell !== "number" && typeof cell !== "string") return null;
  const text = String(cell).trim();
  const percent = text.endsWith("%");
  const number = decimal(percent ? text.slice(0, -1) : text);
  return number && { number, percent };
}

export function worth(numeral: Numeral, cell: CellNumber, column: string): Worth {
  if (numeral.percent) return ofPercent(numeral, cell, column);
  if (cell.percent) return null;
  // 37.8 million is 37800000, and it is 37.8 in `cost_million_usd`.
  for (const power of new Set([numeral.power, numeral.power - scaleOf(column)])) {
    const least = numeral.power || numeral.digits.places ? 2 : 3;
    const found = power >= 0 ? compared(numeral.digits, shifted(cell.number, -power), least) : null;
    if (found) return found;
  }
  return null;
}

/** 94.9 % is the cell `94.9%`, 94.9 in a column of shares or with a fraction, or the share 0.949. */
function ofPercent(numeral: Numeral, cell: CellNumber, column: string): Worth {
  if (numeral.power) return null;
  const { digits, places } = cell.number;
  const isShare = cell.percent || SHARE.test(column) || digits % 10n ** BigInt(places) !== 0n;
  if (!isShare) return null;
  const isPart = !cell.percent && size(digits) <= 10n ** BigInt(places);
  return compared(numeral.digits, cell.number, 2) ?? (isPart ? compared(numeral.digits, shifted(cell.number, 2), 2) : null);
}

/** Rounded numbers must show some digits: much is a 3 if it is rounded. */
function compared(shown: Decimal, exact: Decimal, least: number): Worth {
  if (same(shown, exact)) return "same";
  return digitsOf(shown) >= least && isRounded(exact, shown) ? "rounded" : null;
}

export const digitsOf = ({ digits }: Decimal) => String(size(digits)).length;
const size = (digits: bigint) => (digits < 0n ? -digits : digits);

const SHARE = /percent|pct|share|ratio|(?:^|_)rate|proportion|[%％]|占比|比例|比率|百分|率$/i;
const SCALES: readonly (readonly [RegExp, number])[] = [
  [/billion|(?:^|_)bn(?:_|$)|十亿/, 9],
  [/million|(?:^|_)mn(?:_|$)|百万/, 6],
  [/亿/, 8],
  [/万/, 4],
  [/thousand|千/, 3],
];

/** Ten to this power is the unit that a column's name says. */
function scaleOf(column: string): number {
  return SCALES.find(([said]) => said.test(column.toLowerCase()))?.[1] ?? 0;
}
