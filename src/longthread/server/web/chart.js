// A chart that a step made: drawn when it comes into sight, with its rows as a table and its specification as text.
// Loaded with the first chart.

import * as api from "./api.js";
import { codeBlock, copyButton } from "./code.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { resultTable } from "./table.js";

/** The chart of a step as a figure; `stored` is its specification without rows. */
export function chartFigure(threadId, step, stored) {
  const box = el("div.chart-box");
  const tip = el("div.tip", { hidden: true, "aria-hidden": "true" });
  const state = el("p.note", {}, t("drawing"));
  const more = el("div.chart-more");
  const title = [stored.title].flat().filter((text) => typeof text === "string").join(" ");
  const node = el("figure.chart", {}, title ? el("figcaption", { dir: "auto" }, title) : null, state, el("div.chart-place", {}, box, tip), more);
  let spec = null;
  let away = null;
  let drawn = 0;
  let busy = false;

  async function show(width) {
    busy = true;
    drawn = width;
    try {
      spec ??= await load();
      const { draw } = await import("./drawing.js");
      const before = away;
      away = await draw(spec, box, width);
      before?.();
      state.hidden = true;
      // What is wider than its place is scrolled, also by the keyboard.
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    } catch (error) {
      sight.disconnect();
      fail(error);
      return;
    } finally {
      busy = false;
    }
    look();
  }

  async function load() {
    const found = await api.chart(threadId, step.step);
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", said(found, title));
    more.replaceChildren(...tableOf(found, title), textOf(found));
    return found;
  }

  function fail(error) {
    away?.();
    box.replaceChildren();
    box.removeAttribute("role");
    box.removeAttribute("aria-label");
    state.className = "wrong";
    state.hidden = false;
    state.textContent = t("chartFailed", { reason: error instanceof TypeError && spec === null ? t("offline") : error.message });
    if (spec === null) more.replaceChildren(textOf(stored));
    more.lastElementChild.open = true;
  }

  const room = () => Math.floor(box.clientWidth / 8) * 8;
  const look = () => {
    if (!busy && room() > 0 && room() !== drawn) show(room());
  };
  // A closed step has no room, and is drawn when it is opened.
  const sight = new ResizeObserver(look);
  sight.observe(box);
  return node;
}

/** What the picture shows, for who does not see it; its rows are below. */
function said(spec, title) {
  const channels = Object.values(spec.encoding ?? {}).map((channel) => channel?.title ?? channel?.field);
  const kind = t(`mark_${spec.mark?.type ?? spec.mark}`);
  return [kind, title, channels.filter(Boolean).join(" · "), t("rows", { n: rowsOf(spec).length })].filter(Boolean).join(" · ");
}

const rowsOf = (spec) => (Array.isArray(spec.data?.values) ? spec.data.values : []);

function tableOf(spec, title) {
  const rows = rowsOf(spec);
  if (!rows.length) return [];
  const names = Object.keys(rows[0]);
  const copied = () => [names, ...rows.map((row) => names.map((name) => row[name]))].map(lineOf).join("\r\n");
  const table = resultTable(names, rows.map((row) => names.map((name) => row[name])), { caption: title || t("chartData") });
  return [el("details", {}, el("summary", {}, t("chartData"), el("span.count", {}, t("rows", { n: rows.length }))), el("div.code", {}, table, copyButton(copied)))];
}

/** A line of CSV. */
function lineOf(cells) {
  return cells.map((cell) => {
    const text = cell === null || cell === undefined ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
    return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }).join(",");
}

/** The specification; its rows, which stand above, are only copied with it. */
function textOf(spec) {
  const { values, ...data } = spec.data ?? {};
  const short = JSON.stringify({ ...spec, data }, null, 2);
  return el("details", {}, el("summary", {}, t("chartSpec"), el("span.count", {}, "Vega-Lite")),
    codeBlock(t("chartSpec"), JSON.stringify(spec, null, 2), [short]));
}
