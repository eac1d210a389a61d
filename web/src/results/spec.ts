// The Vega-Lite specifications of charts. Loaded with the first chart.

import { type Kind, kindsOf, momentOf } from "./columns";
import { type Form, MARKS, MOST_BARS, type Sort, type Spec } from "./forms";
import type { Cell, Row } from "./result";

/** Rows of a chart at most; the server's charts have as many. */
export const MOST_ROWS = 5000;

type Values = Record<string, string | number | null>[];

/** The specification of a form, with the rows. Several measures have a mark for each of them, in the measure's colour. */
export function specOf(form: Form, columns: readonly string[], rows: readonly Row[]): Spec {
  const { mark, x, y, color, beside, sort = "rows" } = form;
  const kinds = kindsOf(columns, rows);
  const kind = kinds[x] ?? "text";
  const isSeveral = beside.length > 0;
  const title = (place: number) => columns[place] ?? "";
  const along = {
    field: `c${x}`,
    title: title(x),
    ...typeOf(kind, rows, x),
    ...(kind === "year" && sort !== "rows" ? { sort: null } : {}),
  };
  const measure = isSeveral
    ? { field: "value", type: "quantitative", title: null }
    : { field: `c${y}`, title: title(y), type: "quantitative" };
  const series = isSeveral
    ? { field: "measure", type: "nominal", title: null, sort: null }
    : color === null
      ? null
      : { field: `c${color}`, title: title(color), ...typeOf(kinds[color] ?? "text", rows, color) };
  const shown = rows.slice(0, MOST_ROWS).flatMap((row) => {
    const value = (place: number) => valueOf(row[place] ?? null, kinds[place] ?? "text");
    const own = { [along.field]: value(x), ...(color === null || isSeveral ? {} : { [`c${color}`]: value(color) }) };
    return isSeveral
      ? [y, ...beside].map((place) => ({ ...own, measure: title(place), value: value(place) }))
      : [{ ...own, [measure.field]: value(y) }];
  });
  const added = mark === "point" ? shown : addedUp(shown, measure.field);
  const values = kind === "time" ? added : inOrder(added, along.field, measure.field, sort);
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    ...(added.length < shown.length ? { usermeta: { sum: measure.field } } : {}),
    data: { values },
    mark: { type: mark, tooltip: true, ...(mark === "line" ? { point: rows.length <= MOST_BARS } : {}) },
    encoding:
      mark === "arc"
        ? { theta: measure, color: along }
        : { ...placed(form, along, measure, series, kind, values), ...(series ? { color: series } : {}) },
  };
}

/** Rows that differ in a measure alone, added up: else a mark would hide another. */
function addedUp(values: Values, measure: string): Values {
  const sums = new Map<string, Values[number]>();
  for (const value of values) {
    const key = JSON.stringify({ ...value, [measure]: null });
    const known = sums.get(key);
    if (!known) sums.set(key, { ...value });
    else if (value[measure] !== null) known[measure] = Number(known[measure]) + Number(value[measure]);
  }
  return [...sums.values()];
}

/** Whether a form adds up rows. */
export const addsUp = (form: Form, columns: readonly string[], rows: readonly Row[]): boolean =>
  "usermeta" in specOf(form, columns, rows);

function inOrder(values: Values, x: string, measure: string, sort: Sort): Values {
  if (sort === "rows") return values;
  const places = [...new Set(values.map((value) => value[x] ?? ""))];
  const total = (place: string | number) =>
    values.reduce((sum, value) => sum + ((value[x] ?? "") === place ? Number(value[measure]) : 0), 0);
  const totals = new Map(places.map((place) => [place, total(place)]));
  const named = new Intl.Collator(undefined, { numeric: true });
  const compare = (a: string | number, b: string | number) =>
    sort === "name"
      ? named.compare(String(a), String(b))
      : ((totals.get(b) ?? 0) - (totals.get(a) ?? 0)) * (sort === "most" ? 1 : -1);
  const rank = new Map(places.toSorted(compare).map((place, at) => [place, at]));
  return values.toSorted((a, b) => (rank.get(a[x] ?? "") ?? 0) - (rank.get(b[x] ?? "") ?? 0));
}

/** The axes. Names stand on the left where they are many or long: they are read better there. */
function placed(
  { mark, beside, stack = beside.length ? "grouped" : "stacked" }: Form,
  along: { field: string },
  measure: object,
  series: object | null,
  kind: Kind,
  values: Values,
) {
  const names = [...new Set(values.map((value) => String(value[along.field])))];
  const lies =
    mark === "bar" &&
    kind === "text" &&
    (values.length > 6 || Math.max(0, ...names.map(widthOf)) > UPRIGHT / names.length);
  const isStacked = series !== null && (mark === "bar" || mark === "area");
  const value = isStacked && stack === "normalize" ? { ...measure, stack } : measure;
  const offset = isStacked && mark === "bar" && stack === "grouped" ? { [lies ? "yOffset" : "xOffset"]: series } : {};
  return { ...(lies ? { x: value, y: along } : { x: along, y: value }), ...offset };
}

/** Pixels that names below an axis have together. */
const UPRIGHT = 620;
/** How wide a text is drawn, about. */
export const widthOf = (text: string) => [...text].reduce((sum, one) => sum + (one > "\u2e7f" ? 12.5 : 7), 0);

interface Channel {
  field?: string;
  aggregate?: unknown;
  bin?: unknown;
  stack?: unknown;
}

/** The form of a specification over a result's columns; null: it is none, since it reckons something. */
export function formOf(spec: Spec, columns: readonly string[]): Form | null {
  const { x, y, color, theta, ...others } = (spec["encoding"] ?? {}) as Record<string, Channel>;
  const mark = MARKS.find(
    (each) => each === spec["mark"] || each === (spec["mark"] as { type?: string } | undefined)?.type,
  );
  const reckons =
    [x, y, color, theta].some((channel) => channel?.aggregate || channel?.bin) ||
    "transform" in spec ||
    "facet" in others ||
    "row" in others ||
    "column" in others;
  if (!mark || reckons) return null;
  const place = (channel: Channel | undefined) => columns.indexOf((channel?.field ?? "").replace(/\\(.)/g, "$1"));
  const lies = mark === "bar" && (y as { type?: string } | undefined)?.type !== "quantitative";
  const [along, value] = mark === "arc" ? [color, theta] : lies ? [y, x] : [x, y];
  const form = {
    mark,
    x: place(along),
    y: place(value),
    color: mark === "arc" || !color ? null : place(color),
    beside: [],
  };
  return form.x < 0 || form.y < 0 || (form.color ?? 0) < 0 ? null : form;
}

/** A specification that names its data, with the rows of that. */
export function withRows(spec: Spec, columns: readonly string[], rows: readonly Row[]): Spec {
  const channels = Object.values((spec["encoding"] ?? {}) as Record<string, { field?: string; type?: string }>);
  // Vega reads points and brackets in a field's name as a path: there they are escaped.
  const typeOfField = new Map(channels.map(({ field = "", type }) => [field.replace(/\\(.)/g, "$1"), type]));
  for (const { fold = [] } of (spec["transform"] ?? []) as { fold?: readonly string[] }[])
    for (const field of fold) typeOfField.set(field.replace(/\\(.)/g, "$1"), "quantitative");
  const kindOf = (name: string): Kind =>
    (({ quantitative: "number", temporal: "time" }) as const)[typeOfField.get(name) ?? ""] ?? "text";
  const values = rows.map((row) =>
    Object.fromEntries(columns.map((name, at) => [name, valueOf(row[at] ?? null, kindOf(name))])),
  );
  return { ...spec, data: { ...(spec["data"] as object), values } };
}

function typeOf(kind: Kind, rows: readonly Row[], place: number) {
  if (kind === "number") return { type: "quantitative" };
  if (kind === "year") return { type: "ordinal" };
  if (kind !== "time") return { type: "nominal", sort: null };
  const texts = rows.map((row) => row[place]).filter((cell) => typeof cell === "string");
  // In local time a browser could show the day before.
  if (texts.every((text) => text.length === 10)) return { type: "temporal", timeUnit: "utcyearmonthdate" };
  return {
    type: "temporal",
    ...(texts.every((text) => text.length === 7) ? { timeUnit: "utcyearmonth" } : { scale: { type: "utc" } }),
  };
}

function valueOf(cell: Cell, kind: Kind): string | number | null {
  if (cell === null) return null;
  if (kind === "time") return momentOf(String(cell))?.toISOString() ?? null;
  if (kind !== "number") return String(cell);
  return Number.isFinite(Number(cell)) ? Number(cell) : null;
}
