// Which charts fit a result, by the kinds of its columns.

import type { Formats } from "../formats/chosen";
import type { ColumnFormat } from "../formats/columnFormat";
import { formatsOf } from "../formats/guess";
import { type Kind, kindsOf } from "./columns";
import type { Row } from "./result";

export type Spec = Record<string, unknown>;

export interface Form {
  readonly mark: Mark;
  /** Places of columns. Of an arc, `x` is what each slice is of. */
  readonly x: number;
  readonly y: number;
  readonly color: number | null;
  /** Places of more measures on y's axis. */
  readonly beside: readonly number[];
  /** How marks of one place stand to each other; none: beside each other for several measures, else stacked. */
  readonly stack?: Stack;
  /** The order of places that are no times; none: that of the rows. */
  readonly sort?: Sort;
}

export const MARKS = ["bar", "line", "area", "point", "arc"] as const;
export const STACKS = ["grouped", "stacked", "normalize"] as const;
export const SORTS = ["rows", "most", "least", "name"] as const;
export type Mark = (typeof MARKS)[number];
export type Stack = (typeof STACKS)[number];
export type Sort = (typeof SORTS)[number];

export const MOST_BARS = 60;
const MOST_SLICES = 8;
const MOST_COLORS = 12;
const MOST_BESIDE = 4;
/** A measure this many times larger than another would hide it on the same axis. */
const ALIKE = 20;

/** The forms that fit, the best one first; none where the rows are no chart. `given` are formats of columns that are not guessed. */
export function formsOf(columns: readonly string[], rows: readonly Row[], given: Formats = {}): Form[] {
  if (rows.length < 2) return [];
  const kinds = kindsOf(columns, rows);
  const at = (...wanted: Kind[]) => kinds.flatMap((kind, place) => (wanted.includes(kind) ? [place] : []));
  const [number, other, ...others] = at("number");
  if (number === undefined) return [];
  const beside = other === undefined ? [] : alikeOf(number, [other, ...others], rows, formatsOf(columns, rows, given));
  const [time] = at("time", "year");
  const names = at("text", "boolean");
  const values = (place: number) => rows.map((row) => String(row[place]));
  if (time !== undefined)
    return overTime(
      time,
      number,
      names.find((name) => isSeries(values(time), values(name))) ?? null,
      values(time),
      beside,
    );
  const [name, second] = names;
  if (name !== undefined) return byName(name, number, second, rows, values, beside);
  return other === undefined ? [] : [{ mark: "point", x: number, y: other, color: null, beside: [] }];
}

/** Measures that can share an axis with the first one: they have its unit, and sizes like it. */
function alikeOf(
  first: number,
  others: readonly number[],
  rows: readonly Row[],
  formats: readonly ColumnFormat[],
): number[] {
  const largest = (place: number) => Math.max(...rows.map((row) => Math.abs(Number(row[place])) || 0));
  const size = largest(first);
  const isAlike = (other: number) =>
    formats[other]?.kind === formats[first]?.kind && formats[other]?.unit === formats[first]?.unit;
  return others
    .filter((other) => isAlike(other) && Math.max(size, largest(other)) <= ALIKE * Math.min(size, largest(other)))
    .slice(0, MOST_BESIDE);
}

/** Lines where each moment has one value, or one for each series. */
function overTime(
  time: number,
  y: number,
  color: number | null,
  times: readonly string[],
  alike: readonly number[],
): Form[] {
  if (color === null && new Set(times).size < times.length) return [{ mark: "point", x: time, y, color, beside: [] }];
  const beside = color === null ? alike : [];
  const marks: Mark[] = new Set(times).size > MOST_BARS ? ["line", "area"] : ["line", "bar", "area"];
  // Areas would be stacked, as if measures were parts of a sum.
  return marks
    .filter((mark) => mark !== "area" || beside.length === 0)
    .map((mark) => ({ mark, x: time, y, color, beside }));
}

function byName(
  x: number,
  y: number,
  second: number | undefined,
  rows: readonly Row[],
  values: (place: number) => string[],
  alike: readonly number[],
): Form[] {
  const different = new Set(values(x)).size;
  if (different > MOST_BARS) return [];
  const color = second !== undefined && different < rows.length && isSeries(values(x), values(second)) ? second : null;
  if (color === null && different < rows.length) return [];
  const beside = color === null ? alike : [];
  const isWhole = color === null && rows.length <= MOST_SLICES && rows.every((row) => Number(row[y]) > 0);
  return [
    { mark: "bar", x, y, color, beside },
    ...(isWhole ? [{ mark: "arc" as const, x, y, color, beside: [] }] : []),
  ];
}

/** Whether a column tells rows with the same place apart, and has few enough values for colours. */
function isSeries(places: readonly string[], series: readonly string[]): boolean {
  const many = new Set(series).size;
  const pairs = new Set(places.map((place, row) => `${place}\u0000${series[row]}`));
  return many > 1 && many <= MOST_COLORS && pairs.size === places.length;
}
