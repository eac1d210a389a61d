// A chart drawn by Vega, in the page's colours and language and as wide as its place. Loaded with the first chart.
//
// Expressions of a specification are interpreted and never made into code, which the page's policy would refuse.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { compile, expressionInterpreter, parse, View } from "./vega.js";

const DAY = ["%Y-%m-%d", ["utcyearmonthdate", "yearmonthdate"]];
const MONTH = ["%Y-%m", ["utcyearmonth", "yearmonth"]];
const LARGEST = 6000;
// It cannot be in the style's variables: colours between these are reckoned. They are seen on light and on dark.
const RAMP = ["#5fb3a4", "#4a86c8", "#8a63d2"];

/** Draws `spec` into `box`, `width` pixels wide. Returns a function that ends it. Throws what is wrong. */
export async function draw(spec, box, width) {
  const { made, config } = fitted(structuredClone(spec), width);
  const wrong = [];
  const vega = compile(made, { config, logger: logger(wrong) }).spec;
  const view = new View(parse(vega, { locale: locale() }, { ast: true }), {
    expr: expressionInterpreter,
    loader: { load: refuse, sanitize: refuse, http: refuse, file: refuse },
    logger: logger(wrong),
    renderer: "svg",
    tooltip: (_, event, __, value) => tell(box, event, value),
  });
  const stage = el("div");
  try {
    await view.initialize(stage).runAsync();
    if (wrong.length) throw wrong[0];
  } catch (error) {
    view.finalize();
    throw error;
  }
  box.replaceChildren(stage);
  return () => view.finalize();
}

/** Whatever a specification names, nothing is loaded. */
const refuse = () => Promise.reject(new Error(t("chartLoads")));

/** Vega tells its logger what fails, and goes on; of what it could not load it only warns. */
function logger(wrong) {
  const quiet = () => own;
  const error = (...said) => {
    wrong.push(said.find((each) => each instanceof Error) ?? new Error(said.join(" ")));
    return own;
  };
  const warn = (...said) => (said.some((each) => each instanceof Error) ? error(...said) : own);
  const own = { level: quiet, info: quiet, debug: quiet, warn, error };
  return own;
}

// What the page adds. Where a specification says something itself, that is left as it is.

function fitted(spec, width) {
  delete spec.title; // which the page shows
  const { x, y, color, theta } = spec.encoding ?? {};
  // Else slices stand in the order of their names, and beside a legend in the order of the rows.
  if (theta?.field && !theta.aggregate) spec.encoding.order ??= { field: theta.field, type: "quantitative", sort: "descending", title: theta.title };
  for (const channel of Object.values(spec.encoding ?? {})) tellInWords(channel);
  const narrow = width < 480;
  const columns = valuesOf(spec, x);
  // Bars that are too thin to be seen are made wider than their place, which scrolls.
  const wide = spec.mark?.type === "arc" ? Math.min(width, 460) : Math.min(LARGEST, Math.max(width, 60 + columns.length * 9));
  spec.width ??= wide;
  spec.height ??= isDiscrete(y) ? { step: 24 } : 260;
  spec.autosize ??= { type: "fit-x", contains: "padding" };
  return { made: spec, config: config({ narrow, width: wide, columns, series: valuesOf(spec, color).length }) };
}

const isDiscrete = (channel) => channel?.type === "nominal" || channel?.type === "ordinal";

/** The different values of a column that stand along an axis or in a legend. */
function valuesOf(spec, channel) {
  if (!isDiscrete(channel) || !channel.field) return [];
  const name = channel.field.replace(/\\(.)/gu, "$1");
  return [...new Set((spec.data?.values ?? []).map((row) => String(row[name])))];
}

/** Says days and months as they are written everywhere, and what was made of numbers in the page's language. */
function tellInWords(channel) {
  for (const [format, units] of [DAY, MONTH]) {
    if (units.includes(channel.timeUnit)) channel.axis ??= { format, labelOverlap: true };
  }
  if (channel.aggregate === "count" && channel.title === "count") channel.title = t("aggregateCount");
  const field = (channel.field ?? "").replace(/\\(.)/gu, "$1");
  if (channel.aggregate && channel.title === `${channel.aggregate} of ${field}`) {
    channel.title = t("aggregateOf", { aggregate: t(`aggregate_${channel.aggregate}`), field });
  }
}

function config({ narrow, width, columns, series }) {
  const style = getComputedStyle(document.documentElement);
  const colors = Array.from({ length: 8 }, (_, place) => `var(--chart-${place + 1})`);
  const text = { labelColor: "var(--soft)", titleColor: "var(--soft)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 };
  const legend = narrow
    ? { orient: "bottom", symbolDirection: "vertical", gradientDirection: "horizontal", gradientLength: 160, columns: series > 3 ? 2 : 1, labelLimit: width / 2 - 40, titleLimit: width - 20 }
    : { labelLimit: 150, titleLimit: 170 };
  return {
    font: style.getPropertyValue("--text").trim(),
    background: "transparent",
    padding: 3,
    view: { stroke: null },
    mark: { color: colors[0] },
    arc: { stroke: "var(--card)", strokeWidth: 1 },
    line: { strokeWidth: 2 },
    area: { fillOpacity: 0.75, line: true },
    point: { filled: true, size: 45, opacity: 0.9 },
    range: { category: colors, ramp: RAMP, heatmap: RAMP },
    axis: { ...text, domainColor: "var(--faint)", tickColor: "var(--faint)", gridColor: "var(--line)", labelLimit: narrow ? 100 : 170, titleLimit: width - 40 },
    // Above the axis and upright: Chinese is hard to read on its side.
    axisY: { titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleBaseline: "bottom", titleX: 0, titleY: -9 },
    axisXDiscrete: angle(columns, width),
    legend: { ...text, ...legend, symbolType: "circle" },
  };
}

/** How labels below an axis stand: upright where there is room for them. */
function angle(columns, width) {
  const each = (width - 70) / Math.max(1, columns.length);
  const longest = Math.max(0, ...columns.map((text) => [...text].reduce((sum, one) => sum + (one > "\u2e7f" ? 12.5 : 7), 0)));
  if (longest < each - 4) return { labelAngle: 0 };
  return { labelAngle: each < 20 ? -90 : -45, labelLimit: 110, labelOverlap: each < 13 ? "parity" : false };
}

function locale() {
  const months = t("months").split(" ");
  const days = t("days").split(" ");
  const words = { months, shortMonths: months, days, shortDays: days, periods: t("periods").split(" ") };
  return { time: { dateTime: "%x %X", date: "%Y-%m-%d", time: "%H:%M:%S", ...words } };
}

// What a mark stands for, told beside it.

function tell(box, event, value) {
  const tip = box.parentElement?.querySelector(".tip");
  if (!tip) return;
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  const lines = typeof value === "object" ? Object.entries(value).map(([name, said]) => `${name}: ${said}`) : [String(value)];
  tip.textContent = lines.join("\n");
  const place = box.parentElement.getBoundingClientRect();
  const left = Math.min(event.clientX - place.left + 14, place.width - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, event.clientY - place.top - tip.offsetHeight - 10)}px`;
}
