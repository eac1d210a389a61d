// A result as a table that scrolls in its box, with so many rows at first and the others on request.

import { el } from "./dom.js";
import { t } from "./i18n.js";

const PAGE = 100;

/**
 * A table of `columns` and `rows`. `more` is where rows come from that are not here yet: a function that gives all of
 * them, or null when these are all.
 */
export function resultTable(columns, rows, { caption, more = null }) {
  if (!rows.length) return el("p.note", {}, t("noRows"));
  const numeric = columns.map((_, place) => rows.slice(0, 50).every((row) => row[place] === null || isNumber(row[place])));
  const body = el("tbody");
  const head = el("thead", {}, el("tr", {}, columns.map((name, place) => el("th", { scope: "col", class: numeric[place] ? "num" : null }, name))));
  const box = el("div.table-box", { tabindex: 0, role: "region", "aria-label": caption }, el("table", {}, head, body));
  const button = el("button.quiet.more-rows", { type: "button", onclick: () => next() }, t("moreRows"));
  let shown = 0;

  function show() {
    body.append(...rows.slice(shown, shown + PAGE).map((row) => el("tr", {}, row.map((value, place) => cell(value, numeric[place])))));
    shown = Math.min(rows.length, shown + PAGE);
    button.hidden = shown >= rows.length && more === null;
  }

  async function next() {
    if (shown >= rows.length && more !== null) {
      button.disabled = true;
      try {
        rows = await more();
        more = null;
      } finally {
        button.disabled = false;
      }
    }
    show();
  }

  show();
  return el("div.result", {}, box, button);
}

/** Whether a cell is a number, or one that JSON does not have. */
const isNumber = (value) => typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity";

function cell(value, numeric) {
  if (value === null || value === undefined) return el("td.null", {}, t("empty"));
  return el("td", { class: numeric ? "num" : null }, typeof value === "object" ? JSON.stringify(value) : String(value));
}
