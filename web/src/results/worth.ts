// Whether a number that is written is a cell: the same, or the cell rounded as it is written.

import { type Decimal, decimal, isRounded, mayBe, same, shifted } from "./decimal";
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

/** A column, and whether its name and the unit in it are said where the number stands. */
export interface Told {
  readonly column: string;
  readonly isNamed: boolean;
  readonly isUnitTold: boolean;
}

export function worth(numeral: Numeral, cell: CellNumber, { column, isNamed, isUnitTold }: Told): Worth {
  if (numeral.percent) return ofPercent(numeral, cell, column, isNamed);
  if (cell.percent) return null;
  // 37.8 million is 37800000, and it is 37.8 in `cost_million_usd`; 37.8 is so only where millions are spoken of.
  const scale = scaleOf(column);
  const power = isUnitTold && !numeral.power ? 0 : numeral.power - scale;
  const least = numeral.power || numeral.digits.places ? 2 : 3;
  return power >= 0 ? compared(numeral.digits, shifted(cell.number, -power), least) : null;
}

/** Whether a text says the unit that a column's name has, or the name has none. */
export function namesUnit(text: string, column: string): boolean {
  const said = unitOf(column);
  return said === null || said.test(text.toLowerCase());
}

/** 94.9 % is the cell `94.9%`, 94.9 in a column of percents or shares, or one with fractions that is named, or the share 0.949. */
function ofPercent(numeral: Numeral, cell: CellNumber, column: string, isNamed: boolean): Worth {
  if (numeral.power) return null;
  const { digits, places } = cell.number;
  const isPercent = cell.percent || PERCENT.test(column);
  const isShare = isPercent || SHARE.test(column) || (isNamed && digits % 10n ** BigInt(places) !== 0n);
  if (!isShare) return null;
  // A share up to 1 is a part of 1, not of 100.
  const isPart = !isPercent && size(digits) <= 10n ** BigInt(places);
  return compared(numeral.digits, isPart ? shifted(cell.number, 2) : cell.number, 2);
}

/** Rounded numbers must show some digits: much is a 3 if it is rounded. */
function compared(shown: Decimal, exact: Decimal, least: number): Worth {
  if (!mayBe(shown, exact)) return null;
  if (same(shown, exact)) return "same";
  return digitsOf(shown) >= least && isRounded(exact, shown) ? "rounded" : null;
}

export const digitsOf = ({ digits }: Decimal) => String(size(digits)).length;
const size = (digits: bigint) => (digits < 0n ? -digits : digits);

const PERCENT = /percent|pct|[%％]|百分/i;
const SHARE = /share|ratio|(?:^|_)rate|proportion|占比|比例|比率|率$/i;
const SCALES: readonly (readonly [RegExp, number])[] = [
  [/billion|(?:^|_)bn(?:_|$)|十亿/, 9],
  [/million|(?:^|_)mn(?:_|$)|百万/, 6],
  [/亿/, 8],
  [/万/, 4],
  [/thousand|千/, 3],
];

const scales = new Map<string, (typeof SCALES)[number] | undefined>();

/** Asked for each cell, and the same for all of a column. */
function scaleIn(column: string) {
  if (!scales.has(column))
    scales.set(
      column,
      SCALES.find(([said]) => said.test(column.toLowerCase())),
    );
  return scales.get(column);
}
/** Ten to this power is the unit that a column's name says. */
const scaleOf = (column: string): number => scaleIn(column)?.[1] ?? 0;
const unitOf = (column: string): RegExp | null => scaleIn(column)?.[0] ?? null;
