// The formats of columns in a chart: short along its axes, whole where a mark is pointed at, with headings in words.

import type { Spec } from "../results/forms";
import { type Cell, cellText } from "../results/result";
import { type ColumnFormat, isNumeric } from "./columnFormat";
import type { Formats } from "./chosen";
import { guessed } from "./guess";
import { type HeadingWords, headingOf } from "./heading";
import { shortenedTick, withPlaces, written } from "./written";

interface Channel extends Record<string, unknown> {
  field?: string;
  type?: string;
  title?: unknown;
  aggregate?: string;
  stack?: unknown;
  axis?: object | null;
  scale?: { type?: unknown } | null;
  legend?: object | null;
}

/** The functions of Vega that write values, and how they are given a format: as text. */
export const WRITES = "columnValue";
const SHORTENS = "columnShort";

/** A copy of a specification that has its rows, with the formats of its columns: those that are given, else guesses. */
export function formattedSpec(spec: Spec, given: Formats, words: HeadingWords): Spec {
  const made = structuredClone(spec);
  const rows = ((made["data"] as { values?: unknown } | undefined)?.values ?? []) as Record<string, Cell>[];
  const format = (field: string, name: string) => formatIn(rows, field, name, given);
  const folded = ((made["transform"] ?? []) as { fold?: string[]; as?: string[] }[]).find(({ fold }) => fold);
  const { sum } = (made["usermeta"] ?? {}) as { sum?: string };
  const texts: string[] = [];
  for (const [at, channel] of Object.entries((made["encoding"] ?? {}) as Record<string, Channel>)) {
    const field = unescaped(channel.field ?? "");
    const name =
      typeof channel.title === "string" && !channel.aggregate && /^(?:c\d+|x|value)$/.test(field)
        ? channel.title
        : field;
    if (channel.type === "quantitative" && field && rows.length) {
      const inFold = folded?.as?.[1] === field;
      const found =
        channel.stack === "normalize"
          ? SHARE
          : inFold
            ? alike((folded?.fold ?? []).map((each) => format(unescaped(each), unescaped(each))))
            : format(field, name);
      const text = JSON.stringify({ ...found, locale: words.locale });
      texts.push(text);
      if (at === "x" || at === "y")
        channel.axis =
          channel.axis === null
            ? null
            : {
                format: text,
                formatType: WRITES,
                labelExpr: `${SHORTENS}(datum.value, ${JSON.stringify(text)}, ${reach(at, channel)})`,
                ...channel.axis,
              };
      else if (at === "color")
        channel.legend = channel.legend === null ? null : { format: text, formatType: WRITES, ...channel.legend };
    }
    if (channel.title === name && name) channel.title = headingOf(name, words);
    if (field && field === sum && typeof channel.title === "string")
      channel.title = words.aggregate("sum", channel.title);
  }
  // What has no axis, such as slices, is written by the first.
  made["config"] = {
    normalizedNumberFormatType: WRITES,
    normalizedNumberFormat: JSON.stringify({ ...SHARE, locale: words.locale }),
    customFormatTypes: true,
    numberFormatType: WRITES,
    numberFormat: texts[0] ?? JSON.stringify({ kind: "number", locale: words.locale }),
    ...(made["config"] as object | undefined),
  };
  return made;
}

/** The format of parts of a whole. */
const SHARE: ColumnFormat = { kind: "share", places: 0 };
/** The expression of what an axis reaches from and to: its ticks are steps up to that. Where they are no steps, each stands by itself. */
const reach = (axis: string, { scale }: Channel) =>
  (scale?.type ?? "linear") === "linear" ? `domain("${axis}")` : "[datum.value]";
const unescaped = (field: string) => field.replace(/\\(.)/gu, "$1");

function formatIn(rows: readonly Record<string, Cell>[], field: string, name: string, given: Formats): ColumnFormat {
  const cells = rows.map((row) => row[field] ?? null);
  const known = given[name];
  const format = known && isNumeric(known) ? withPlaces(known, cells) : guessed(name, cells);
  return isNumeric(format) ? format : { kind: "number" };
}

/** The format that several measures on one axis share: their own, or that of plain numbers. */
function alike(formats: readonly ColumnFormat[]): ColumnFormat {
  const [first] = formats;
  const places = Math.max(0, ...formats.map((each) => each.places ?? 0));
  const same = first && formats.every(({ kind, unit }) => kind === first.kind && unit === first.unit);
  return same ? { ...first, places } : { kind: "number", places };
}

const read = new Map<string, ColumnFormat & { locale: string }>();

function formatOf(text: string) {
  const known = read.get(text) ?? (JSON.parse(text) as ColumnFormat & { locale: string });
  read.set(text, known);
  return known;
}

/** What Vega is given to write values with. */
export const functions = {
  [WRITES]: (value: unknown, text: unknown) =>
    writes(value, text, (cell, format) => written(cell, format, format.locale)),
  [SHORTENS]: (value: unknown, text: unknown, reached: unknown) =>
    writes(value, text, (cell, format) =>
      typeof cell === "number" ? shortenedTick(cell, largestIn(cell, reached), format, format.locale) : cellText(cell),
    ),
};

/** The largest size among a tick and the ends of its axis, which has none where a specification names its scale otherwise. */
const largestIn = (tick: number, reached: unknown) =>
  Math.max(
    ...[tick, ...(Array.isArray(reached) ? reached : [])].map((end) => Math.abs(Number(end))).filter(Number.isFinite),
  );

function writes(
  value: unknown,
  text: unknown,
  write: (cell: Cell, format: ColumnFormat & { locale: string }) => string,
): string {
  if (value === null || value === undefined) return "";
  return typeof text === "string" && text.startsWith("{")
    ? write(value as Cell, formatOf(text))
    : cellText(value as Cell);
}
