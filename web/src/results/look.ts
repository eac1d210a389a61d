// How a chart looks on the page. Where a specification says something itself, that is left as it is.

import type { Words } from "./draw";
import type { Spec } from "./forms";
import { widthOf } from "./spec";

interface Channel extends Record<string, unknown> {
  field?: string;
  type?: string;
  aggregate?: string;
  title?: unknown;
  timeUnit?: string;
}

const DAY = ["%Y-%m-%d", ["utcyearmonthdate", "yearmonthdate"]] as const;
const MONTH = ["%Y-%m", ["utcyearmonth", "yearmonth"]] as const;
const LARGEST = 6000;
const COLORS = 8;

/** A specification as wide as its place, without its title, which the page shows, and in the page's language. */
export function fitted(spec: Spec, width: number, words: Words): Spec {
  delete spec["title"];
  const encoding = encodingOf(spec);
  const { x, y, theta } = encoding;
  // Else slices stand in the order of their names, and beside a legend in the order of the rows.
  if (theta?.field && !theta.aggregate)
    encoding["order"] ??= { field: theta.field, type: "quantitative", sort: "descending", title: theta.title };
  for (const channel of Object.values(encoding)) tellInWords(channel, words);
  // Bars that are too thin to be seen are made wider than their place, which scrolls; points of a line need less.
  const wide =
    markOf(spec) === "arc"
      ? Math.min(width, 460)
      : Math.min(LARGEST, Math.max(width, 60 + valuesOf(spec, x).length * (markOf(spec) === "bar" ? 9 : 5)));
  spec["width"] ??= wide;
  const lines = Math.max(1, ...valuesOf(spec, y).map((text) => [linesOf(text, roomFor(width))].flat().length));
  if (y && lines > 1 && y["axis"] !== null)
    y["axis"] = { labelExpr: `${LINES}(datum.label, ${roomFor(width)})`, ...(y["axis"] as object | undefined) };
  spec["height"] ??= isDiscrete(y) ? { step: 10 + 14 * lines } : 260;
  spec["autosize"] ??= { type: "fit-x", contains: "padding" };
  return spec;
}

/** Pixels for a name on the left. */
const roomFor = (width: number) => Math.round(Math.min(260, width * 0.4));

export const LINES = "columnLines";

const MOST_LINES = 4;

/** A text in lines of so many pixels, at most four. */
export function linesOf(text: string, room: number): string | string[] {
  const lines: string[] = [];
  for (const word of text.split(/(?<=[\s\u2e80-\uffff/-])/u)) {
    const line = `${lines.at(-1) ?? ""}${word}`;
    if (lines.length && (lines.length === MOST_LINES || widthOf(line.trimEnd()) <= room))
      lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines.length > 1 ? lines.map((line) => line.trimEnd()) : text;
}

const encodingOf = (spec: Spec) => (spec["encoding"] ?? {}) as Record<string, Channel>;
const isDiscrete = (channel: Channel | undefined) => channel?.type === "nominal" || channel?.type === "ordinal";

function markOf(spec: Spec): string | undefined {
  const mark = spec["mark"] as string | { type?: string } | undefined;
  return typeof mark === "string" ? mark : mark?.type;
}

/** The different values of a column that stand along an axis or in a legend. */
function valuesOf(spec: Spec, channel: Channel | undefined): string[] {
  if (!isDiscrete(channel) || !channel?.field) return [];
  const name = unescaped(channel.field);
  const { values } = (spec["data"] ?? {}) as { values?: unknown };
  return [...new Set(Array.isArray(values) ? values.map((row: Record<string, unknown>) => String(row[name])) : [])];
}

const unescaped = (field: string) => field.replace(/\\(.)/gu, "$1");

/** Says days and months as they are written everywhere, and what was made of numbers in the page's language. */
function tellInWords(channel: Channel, words: Words) {
  for (const [format, units] of [DAY, MONTH]) {
    if (units.some((unit) => unit === channel.timeUnit)) channel["axis"] ??= { format, labelOverlap: true };
  }
  if (channel.aggregate === "count" && channel.title === "count") channel.title = words.count;
  const field = unescaped(channel.field ?? "");
  if (channel.aggregate && channel.title === `${channel.aggregate} of ${field}`)
    channel.title = words.aggregate(channel.aggregate, field);
}

/** A colour of the page by its name in the style. */
export type Paint = (name: string) => string;

export function configOf(spec: Spec, place: number, paint: Paint) {
  const { x, color } = encodingOf(spec);
  const width = typeof spec["width"] === "number" ? spec["width"] : place;
  const narrow = place < 480;
  const colors = Array.from({ length: COLORS }, (_, at) => paint(`--chart-${at + 1}`));
  const text = {
    labelColor: paint("--ink-2"),
    titleColor: paint("--ink-2"),
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: 550,
  };
  const many = valuesOf(spec, color).length;
  const legend = narrow
    ? {
        orient: "bottom",
        symbolDirection: "vertical",
        gradientDirection: "horizontal",
        gradientLength: 160,
        columns: many > 3 ? 2 : 1,
        labelLimit: width / 2 - 40,
        titleLimit: width - 20,
      }
    : { labelLimit: 220, titleLimit: 220 };
  return {
    font: getComputedStyle(document.documentElement).getPropertyValue("--sans").trim(),
    background: "transparent",
    padding: 3,
    view: { stroke: null },
    mark: { color: colors[0] },
    arc: { stroke: paint("--surface"), strokeWidth: 1 },
    line: { strokeWidth: 2 },
    area: { fillOpacity: 0.75, line: true },
    point: { filled: true, size: 45, opacity: 0.9 },
    range: { category: colors, ramp: RAMP, heatmap: RAMP },
    axis: {
      ...text,
      domainColor: paint("--control"),
      tickColor: paint("--control"),
      gridColor: paint("--line"),
      labelLimit: narrow ? 100 : 170,
      titleLimit: width - 40,
    },
    axisYDiscrete: { labelLimit: roomFor(width) },
    // Above the axis and upright: Chinese is hard to read on its side.
    axisY: { titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleBaseline: "bottom", titleX: 0, titleY: -9 },
    axisXDiscrete: angle(valuesOf(spec, x), width),
    legend: { ...text, ...legend, symbolType: "circle" },
  };
}

// It cannot be in the style's variables: colours between these are reckoned. They are seen on light and on dark.
const RAMP = ["#5fb3a4", "#4a86c8", "#8a63d2"];

/** How labels below an axis stand: upright where there is room for them. */
function angle(columns: readonly string[], width: number) {
  const each = (width - 70) / Math.max(1, columns.length);
  if (Math.max(0, ...columns.map(widthOf)) < each - 4) return { labelAngle: 0 };
  return { labelAngle: each < 20 ? -90 : -45, labelLimit: 160, labelOverlap: each < 13 ? "parity" : false };
}

/** Numbers, months and days as a language writes them. */
export function vegaLocale(locale: string) {
  const parts = new Intl.NumberFormat(locale).formatToParts(-1234567.5);
  const part = (type: string) => parts.find((each) => each.type === type)?.value;
  const named = (options: Intl.DateTimeFormatOptions, dates: Date[]) =>
    dates.map((date) => new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" }).format(date));
  const months = Array.from({ length: 12 }, (_, month) => new Date(Date.UTC(2023, month, 1)));
  const days = Array.from({ length: 7 }, (_, day) => new Date(Date.UTC(2023, 0, 1 + day)));
  const periods = [8, 20].map((hour) => periodOf(locale, hour));
  return {
    number: {
      decimal: part("decimal") ?? ".",
      thousands: part("group") ?? ",",
      grouping: [3],
      currency: ["", ""],
      minus: "−",
    },
    time: {
      dateTime: "%x %X",
      date: "%Y-%m-%d",
      time: "%H:%M:%S",
      periods,
      months: named({ month: "long" }, months),
      shortMonths: named({ month: "short" }, months),
      days: named({ weekday: "long" }, days),
      shortDays: named({ weekday: "short" }, days),
    },
  };
}

function periodOf(locale: string, hour: number): string {
  const format = new Intl.DateTimeFormat(locale, { hour: "numeric", hour12: true, timeZone: "UTC" });
  const parts = format.formatToParts(new Date(Date.UTC(2023, 0, 1, hour)));
  return parts.find(({ type }) => type === "dayPeriod")?.value ?? (hour < 12 ? "AM" : "PM");
}
