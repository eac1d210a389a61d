// Values as people write them: grouped, rounded to the column's places, with its unit, and without the tail of a double
// (52838.549999999996).

import { type Decimal, decimal, shifted } from "../results/decimal";
import { type Cell, cellText } from "../results/result";
import { type ColumnFormat, affixes, isNumeric } from "./columnFormat";

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;
const MOMENT = /^(\d{4,}-\d{2}-\d{2})[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?$/;
/** Significant digits from which a double may have a tail, and that it has at most without it. */
const TAIL_DIGITS = 16;
const TIDY_DIGITS = 12;
/** Places up to which a double's digits are taken for measured ones; a longer one was computed. */
const MEASURED_PLACES = 4;
const SIGNIFICANT = 3;
const MOST_COMPUTED = 8;
/** Digits up to which a number is written without an exponent. */
const LARGEST = 21;
const SHORT_FROM = 10_000;
const SHORT = {
  en: [
    [12, "T"],
    [9, "B"],
    [6, "M"],
    [3, "K"],
  ],
  zh: [
    [12, "万亿"],
    [8, "亿"],
    [4, "万"],
  ],
} as const;

/** A double as people wrote it before it was computed with: 52838.55 for 52838.549999999996; 1/3 stays, and so does a whole number. */
export function withoutTail(value: number): number {
  const text = String(value);
  if (Number.isInteger(value) || text.length < TAIL_DIGITS || significant(text) < TAIL_DIGITS) return value;
  const tidy = value.toPrecision(15);
  return significant(tidy) <= TIDY_DIGITS ? Number(tidy) : value;
}

const significant = (text: string) =>
  text
    .replace(/e.*$/, "")
    .replace(".", "")
    .replace(/^[-0]+/, "")
    .replace(/0+$/, "").length;

/** The number in a cell: a number, or an exact one as text. Null: there is none, or one of very many digits. */
export function numberIn(cell: Cell | undefined): Decimal | null {
  if (typeof cell === "number") {
    const number = decimal(String(withoutTail(cell)));
    return number && magnitude(number) < LARGEST && magnitude(number) > -LARGEST ? number : null;
  }
  return typeof cell === "string" && cell.length < 2 * LARGEST && NUMBER.test(cell) ? decimal(cell) : null;
}

/** The power of ten of the first digit. */
const magnitude = ({ digits, places }: Decimal) => String(digits < 0n ? -digits : digits).length - 1 - places;
const size = (digits: bigint) => (digits < 0n ? -digits : digits);
export const asNumber = ({ digits, places }: Decimal) => Number(digits) / 10 ** places;

/**
 * The format of a column with the places that its values need, if it names none: two of money, and few of what was
 * computed. An exact number keeps all of them.
 */
export function withPlaces(format: ColumnFormat, cells: readonly Cell[]): ColumnFormat {
  if (format.places !== undefined || !isNumeric(format)) return format;
  const numbers = cells
    .map((cell) => numberIn(cell))
    .filter((number) => number !== null)
    .map((number) => (format.kind === "share" ? shifted(number, 2) : number));
  const longest = Math.max(0, ...numbers.map(({ places }) => places));
  const largest = numbers.map((number) => Math.abs(asNumber(number))).reduce((most, each) => Math.max(most, each), 0);
  return {
    ...format,
    places: placesFor(
      format,
      longest,
      largest,
      cells.some((cell) => typeof cell === "string"),
    ),
  };
}

function placesFor({ kind }: ColumnFormat, longest: number, largest: number, isExact: boolean): number {
  if (kind === "currency" && longest) return largest < 10 && longest > 2 && longest <= MEASURED_PLACES ? longest : 2;
  if (kind === "percent" || kind === "share") return longest <= 2 ? longest : 1;
  if (longest <= MEASURED_PLACES || isExact || kind === "plain") return longest;
  return largest >= 1 ? 2 : Math.min(MOST_COMPUTED, SIGNIFICANT - 1 - Math.floor(Math.log10(largest)));
}

/** Whether a cell is a moment with its clock, as ISO 8601 writes it; a day stands for itself. */
export const isMoment = (cell: Cell | undefined): boolean => typeof cell === "string" && MOMENT.test(cell);

/** A cell as people write it in a language. What is no number or date of the format stays; NULL is empty. */
export function written(cell: Cell | undefined, format: ColumnFormat, locale: string): string {
  if (cell === null || cell === undefined) return "";
  if (format.kind === "date" && typeof cell === "string") return MOMENT.exec(cell)?.[1] ?? cell;
  const number = isNumeric(format) ? numberIn(cell) : null;
  if (!number) return isMoment(cell) && format.kind === "text" ? String(cell).replace("T", " ") : cellText(cell);
  const rounded = roundedTo(format.kind === "share" ? shifted(number, 2) : number, format.places);
  return affixed(rounded, format, textOf(rounded, locale, format.kind !== "plain"));
}

/** A number that an answer has as a database wrote it, with separators and no more places than its column has. What may
 * be a year stays as it is: a column's name does not always tell. */
export function tidied(text: string, format: ColumnFormat, locale: string): string {
  if (
    !NUMBER.test(text) ||
    /^[12]\d{3}$/.test(text) ||
    format.kind === "plain" ||
    format.kind === "share" ||
    !isNumeric(format)
  )
    return text;
  const places = text.split(".")[1]?.length ?? 0;
  return written(text, { kind: "number", places: Math.min(places, format.places ?? places) }, locale);
}

/** A cell where space is short: 1.2M, 120万. Below ten thousand, and in percent, as `written`. */
export function shortened(cell: Cell | undefined, format: ColumnFormat, locale: string): string {
  const number = numberIn(cell);
  if (!number || !isShortened(Math.abs(asNumber(number)), format)) return written(cell, format, locale);
  for (const [power, sign] of scalesOf(locale)) {
    const scaled = shifted(number, -power);
    const near = trimmed(roundedTo(scaled, Math.max(0, SIGNIFICANT - 1 - magnitude(scaled))));
    if (magnitude(near) >= 0) return affixed(near, format, `${textOf(near, locale, true)}${sign}`);
  }
  return written(cell, format, locale);
}

/**
 * A tick of an axis whose ticks reach up to `largest`, which tells their scale, so that all have one form: 8K beside 10K.
 * It has the digits that tell it from the next one.
 */
export function shortenedTick(tick: number, largest: number, format: ColumnFormat, locale: string): string {
  // Sums of steps have the tails of doubles.
  const cell = Number(tick.toPrecision(TIDY_DIGITS));
  const number = numberIn(cell);
  const [power, sign] = (isShortened(largest, format) &&
    scalesOf(locale).find(([power]) => 10 ** power <= largest)) || [0, ""];
  if (!number || !power || cell === 0) return written(cell, { ...format, places: undefined }, locale);
  const scaled = trimmed(shifted(number, -power));
  return affixed(scaled, format, `${textOf(scaled, locale, true)}${sign}`);
}

const isShortened = (largest: number, { kind }: ColumnFormat) =>
  largest >= SHORT_FROM && (kind === "number" || kind === "currency" || kind === "unit");
const scalesOf = (locale: string) => SHORT[locale.startsWith("zh") ? "zh" : "en"];

/** A number with so many places, a half away from zero. What would be zero and is none keeps two digits. */
function roundedTo(number: Decimal, places: number | undefined): Decimal {
  if (places === undefined) return number;
  const rounded = atPlaces(number, places);
  return rounded.digits === 0n && number.digits !== 0n ? atPlaces(number, 1 - magnitude(number)) : rounded;
}

function atPlaces({ digits, places }: Decimal, wanted: number): Decimal {
  if (places <= wanted) return { digits: digits * 10n ** BigInt(wanted - places), places: wanted };
  const unit = 10n ** BigInt(places - wanted);
  const whole = (size(digits) * 2n + unit) / (2n * unit);
  return { digits: digits < 0n ? -whole : whole, places: wanted };
}

/** Without zeros at the end. */
function trimmed({ digits, places }: Decimal): Decimal {
  return places > 0 && digits % 10n === 0n ? trimmed({ digits: digits / 10n, places: places - 1 }) : { digits, places };
}

/** The digits of a number without its sign. */
function textOf({ digits, places }: Decimal, locale: string, isGrouped: boolean): string {
  const text = String(size(digits)).padStart(places + 1, "0");
  const [whole, behind] = [text.slice(0, text.length - places), text.slice(text.length - places)];
  if (!isGrouped) return places ? `${whole}.${behind}` : whole;
  const { format, point } = groupingOf(locale);
  return `${format.format(BigInt(whole))}${places ? point + behind : ""}`;
}

function affixed({ digits }: Decimal, format: ColumnFormat, text: string): string {
  const [before, behind] = affixes(format);
  return `${digits < 0n ? "-" : ""}${before}${text}${behind}`;
}

const groupings = new Map<string, { format: Intl.NumberFormat; point: string }>();

/** To make one takes longer than to format a page of numbers. */
function groupingOf(locale: string) {
  const known = groupings.get(locale);
  if (known) return known;
  const format = new Intl.NumberFormat(locale);
  const made = { format, point: format.formatToParts(0.5).find((part) => part.type === "decimal")?.value ?? "." };
  groupings.set(locale, made);
  return made;
}
