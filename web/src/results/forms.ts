// Which charts fit a result, by the kinds of its columns, and their Vega-Lite specifications.

import type { Formats } from "../formats/chosen";
import type { ColumnFormat } from "../formats/columnFormat";
import { formatsOf } from "../formats/guess";
import { type Kind, kindsOf, momentOf } from "./columns";
import type { Cell, Row } from "./result";

export type Mark = "bar" | "line" | "area" | "point" | "arc";
export type Spec = Record<string, unknown>;

export interface Form {
  readonly mark: Mark;
  /** Places of columns. Of an arc, `x` is what each slice is of. */
  readonly x: number;
  readonly y: number;
  readonly color: number | null;
  /** Places of more measures on y's axis. */
  readonly beside: readonly number[];
}

/** Rows of a chart at most; the server's charts have as many. */
export const MOST_ROWS = 5000;
const MOST_BARS = 60;
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
  if (time !== undefined) return overTime(time, number, names.find((name) => isSeries(values(time), values(name))) ?? null, values(time), beside);
  const [name, second] = names;
  if (name !== undefined) return byName(name, number, second, rows, values, beside);
  return other === undefined ? [] : [{ mark: "point", x: number, y: other, color: null, beside: [] }];
}

/** Measures that can share an axis with the first one: they have its unit, and sizes like it. */
function alikeOf(first: number, others: readonly number[], rows: readonly Row[], formats: readonly ColumnFormat[]): number[] {
  const largest = (place: number) => Math.max(...rows.map((row) => Math.abs(Number(row[place])) || 0));
  const size = largest(first);
  const isAlike = (other: number) => formats[other]?.kind === formats[first]?.kind && formats[other]?.unit === formats[first]?.unit;
  return others.filter((other) => isAlike(other) && Math.max(size, largest(other)) <= ALIKE * Math.min(size, largest(other))).slice(0, MOST_BESIDE);
}

/** Lines where each moment has one value, or one for each series. */
function overTime(time: number, y: number, color: number | null, times: readonly string[], alike: readonly number[]): Form[] {
  if (color === null && new Set(times).size < times.length) return [{ mark: "point", x: time, y, color, beside: [] }];
  const beside = color === null ? alike : [];
  const marks: Mark[] = new Set(times).size > MOST_BARS ? ["line", "area"] : ["line", "bar", "area"];
  // Areas would be stacked, as if measures were parts of a sum.
  return marks.filter((mark) => mark !== "area" || beside.length === 0).map((mark) => ({ mark, x: time, y, color, beside }));
}

function byName(x: number, y: number, second: number | undefined, rows: readonly Row[], values: (place: number) => string[], alike: readonly number[]): Form[] {
  const different = new Set(values(x)).size;
  if (different > MOST_BARS) return [];
  const color = second !== undefined && different < rows.length && isSeries(values(x), values(second)) ? second : null;
  if (color === null && different < rows.length) return [];
  const beside = color === null ? alike : [];
  const isWhole = color === null && rows.length <= MOST_SLICES && rows.every((row) => Number(row[y]) > 0);
  return [{ mark: "bar", x, y, color, beside }, ...(isWhole ? [{ mark: "arc" as const, x, y, color, beside: [] }] : [])];
}

/** Whether a column tells rows with the same place apart, and has few enough values for colours. */
function isSeries(places: readonly string[], series: readonly string[]): boolean {
  const many = new Set(series).size;
  const pairs = new Set(places.map((place, row) => `${place}\u0000${series[row]}`));
  return many > 1 && many <= MOST_COLORS && pairs.size === places.length;
}

/** The specification of a form, with the rows. */
export function specOf(form: Form, columns: readonly string[], rows: readonly Row[]): Spec {
  const { mark, x, y, color, beside } = form;
  if (beside.length > 0) return severalOf(form, columns, rows);
  const kinds = kindsOf(columns, rows);
  const channel = (place: number) => ({ field: `c${place}`, title: columns[place] ?? "", ...typeOf(kinds[place] ?? "text", rows, place) });
  const used = [x, y, ...(color === null ? [] : [color])];
  const values = rows.slice(0, MOST_ROWS).map((row) => Object.fromEntries(used.map((place) => [`c${place}`, valueOf(row[place] ?? null, kinds[place] ?? "text")])));
  const encoding =
    mark === "arc"
      ? { theta: channel(y), color: channel(x) }
      : { ...axes(mark, channel(x), channel(y), kinds[x] ?? "text", rows.length), ...(color === null ? {} : { color: channel(color) }) };
  return { $schema: "https://vega.github.io/schema/vega-lite/v6.json", data: { values }, mark: { type: mark, tooltip: true, ...(mark === "line" ? { point: rows.length <= MOST_BARS } : {}) }, encoding };
}

/** Several measures: each row has a mark for each of them, in the measure's colour. */
function severalOf({ mark, x, y, beside }: Form, columns: readonly string[], rows: readonly Row[]): Spec {
  const kinds = kindsOf(columns, rows);
  const kind = kinds[x] ?? "text";
  const measures = [y, ...beside];
  const values = rows.slice(0, MOST_ROWS).flatMap((row) => measures.map((place) => ({ x: valueOf(row[x] ?? null, kind), measure: columns[place] ?? "", value: valueOf(row[place] ?? null, "number") })));
  const measure = { field: "measure", type: "nominal", title: null, sort: null };
  const placed = axes(mark, { field: "x", title: columns[x] ?? "", ...typeOf(kind, rows, x) }, { field: "value", type: "quantitative", title: null }, kind, rows.length * measures.length);
  const offset = mark !== "bar" ? {} : { [(placed.y as { field?: string }).field === "x" ? "yOffset" : "xOffset"]: measure };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    data: { values },
    mark: { type: mark, tooltip: true, ...(mark === "line" ? { point: rows.length <= MOST_BARS } : {}) },
    encoding: { ...placed, color: measure, ...offset },
  };
}

/** A specification that names its data, with the rows of that. */
export function withRows(spec: Spec, columns: readonly string[], rows: readonly Row[]): Spec {
  const channels = Object.values((spec["encoding"] ?? {}) as Record<string, { field?: string; type?: string }>);
  // Vega reads points and brackets in a field's name as a path: there they are escaped.
  const typeOfField = new Map(channels.map(({ field = "", type }) => [field.replace(/\\(.)/g, "$1"), type]));
  for (const { fold = [] } of (spec["transform"] ?? []) as { fold?: readonly string[] }[]) for (const field of fold) typeOfField.set(field.replace(/\\(.)/g, "$1"), "quantitative");
  const kindOf = (name: string): Kind => ({ quantitative: "number", temporal: "time" } as const)[typeOfField.get(name) ?? ""] ?? "text";
  const values = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, valueOf(row[at] ?? null, kindOf(name))])));
  return { ...spec, data: { ...(spec["data"] as object), values } };
}

/** Names stand on the left where there are many: they are read better there. */
function axes(mark: Mark, x: object, y: object, kind: Kind, many: number) {
  const lies = mark === "bar" && kind === "text" && many > 6;
  return lies ? { x: y, y: x } : { x, y };
}

function typeOf(kind: Kind, rows: readonly Row[], place: number) {
  if (kind === "number") return { type: "quantitative" };
  if (kind === "year") return { type: "ordinal" };
  if (kind !== "time") return { type: "nominal", sort: null };
  const texts = rows.map((row) => row[place]).filter((cell) => typeof cell === "string");
  // In local time a browser could show the day before.
  if (texts.every((text) => text.length === 10)) return { type: "temporal", timeUnit: "utcyearmonthdate" };
  return { type: "temporal", ...(texts.every((text) => text.length === 7) ? { timeUnit: "utcyearmonth" } : { scale: { type: "utc" } }) };
}

function valueOf(cell: Cell, kind: Kind): string | number | null {
  if (cell === null) return null;
  if (kind === "time") return momentOf(String(cell))?.toISOString() ?? null;
  if (kind !== "number") return String(cell);
  return Number.isFinite(Number(cell)) ? Number(cell) : null;
}
