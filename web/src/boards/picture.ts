// A table as a picture: a canvas of the page's colours, at twice its size.

import { isNumeric } from "../formats/columnFormat";
import { TEXT, formatsOf } from "../formats/guess";
import { type HeadingWords, headingOf } from "../formats/heading";
import { written } from "../formats/written";
import { giveFile } from "../results/saveChart";
import type { Cell, QueryResult } from "../results/result";

const SCALE = 2;
const [LINE, PAD, GAP] = [28, 16, 24];
const [MOST_ROWS, WIDEST] = [50, 320];

/** Gives the browser the first rows of a result as a PNG. */
export async function saveTable(title: string, result: QueryResult, words: HeadingWords & { locale: string }) {
  const rows = result.rows.slice(0, MOST_ROWS);
  const formats = formatsOf(result.columns, rows, result.formats ?? {});
  const textOf = (cell: Cell, at: number) =>
    cell === null ? "NULL" : written(cell, formats[at] ?? TEXT, words.locale).replace(/\s+/g, " ");
  const lines = [result.columns.map((name) => headingOf(name, words)), ...rows.map((row) => row.map(textOf))];
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  if (pen === null) throw new Error("This browser draws no pictures.");
  const style = getComputedStyle(document.documentElement);
  const sans = style.getPropertyValue("--sans").trim();
  const [plain, bold] = [`13px ${sans}`, `600 13px ${sans}`];
  pen.font = bold;
  const fitting = (text: string): string =>
    pen.measureText(text).width <= WIDEST
      ? text
      : fitting(`${text.slice(0, Math.min(text.length - 2, 80))}…`.replace(/……$/, "…"));
  const cut = lines.map((line) => line.map(fitting));
  const widths = result.columns.map((_, at) =>
    Math.ceil(Math.max(...cut.map((line) => pen.measureText(line[at] ?? "").width))),
  );
  const width =
    Math.max(
      pen.measureText(title).width,
      widths.reduce((sum, each) => sum + each + GAP, -GAP),
    ) +
    2 * PAD;
  const height = PAD + LINE * (cut.length + 1) + PAD;
  canvas.width = Math.ceil(width * SCALE);
  canvas.height = Math.ceil(height * SCALE);
  pen.scale(SCALE, SCALE);
  pen.fillStyle = colour("--surface");
  pen.fillRect(0, 0, width, height);
  pen.textBaseline = "middle";
  pen.fillStyle = colour("--ink-1");
  pen.font = bold;
  pen.fillText(title, PAD, PAD + LINE / 2 - 4);
  for (const [place, line] of cut.entries()) {
    const y = PAD + LINE * (place + 1) + LINE / 2;
    pen.font = place === 0 ? bold : plain;
    pen.fillStyle = colour(place === 0 ? "--ink-2" : "--ink-1");
    let x = PAD;
    for (const [at, text] of line.entries()) {
      const room = widths[at] ?? 0;
      pen.fillText(text, isNumeric(formats[at] ?? TEXT) ? x + room - pen.measureText(text).width : x, y);
      x += room + GAP;
    }
    pen.fillStyle = colour("--line");
    pen.fillRect(PAD, y + LINE / 2, width - 2 * PAD, 1);
  }
  giveFile(canvas.toDataURL("image/png"), `${title}.png`);
}

/** A colour of the style as a canvas understands it. */
function colour(name: string): string {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
