// The part of Markdown that answers use: headings, paragraphs, lists, tables, quotes, code, bold, italic, and labels of
// queries such as [q3]. It builds elements and never markup, so no text can become anything but text.

import { el } from "./dom.js";

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n](?:[\s\S]*?[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])|\[(q\d+(?:\s*,\s*q\d+)*)\]/gu;
const ITEM = /^(\s*)([-*+•]|\d{1,9}[.)])\s+(.*)$/u;
const LONGEST = 50_000;
const FENCE = /^\s*(```+|~~~+)\s*(\S*)/u;
const LABELS = /\[q\d+(?:\s*,\s*q\d+)*\]/gu;
const NUMBER = /^[-+−]?\p{Sc}?\s?(?:\d{1,3}(?:[,\s'’]\d{3})+|\d+)(?:[.,]\d+)?(?:e[-+]?\d+)?\s?(?:%|\p{Sc})?$/iu;
const NOTHING = /^(?:|-|–|—|null|n\/a)$/iu;
const RULE = /^\s*([-*_])(?:\s*\1){2,}\s*$/u;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/u;

/** The elements of a text. `label` makes the element for the label of a query. */
export function markdown(text, label) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), label, 0);
}

function blocks(lines, label, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/u.exec(line);
    const fence = FENCE.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) at = code(lines, at, fence, made);
    else if (heading) {
      made.push(el(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2], label)));
      at += 1;
    } else if (RULE.test(line)) {
      made.push(el("hr"));
      at += 1;
    } else if (isTable(lines, at)) at = table(lines, at, label, made);
    else if (ITEM.test(line)) at = list(lines, at, label, made, depth);
    else if (/^\s*>/u.test(line) && depth < 8) at = quote(lines, at, label, made, depth);
    else at = paragraph(lines, at, label, made);
  }
  return made;
}

function paragraph(lines, at, label, made) {
  const from = at;
  at += 1;
  while (at < lines.length && lines[at].trim() && !begins(lines, at)) at += 1;
  const parts = lines.slice(from, at).flatMap((line, place) => [place ? el("br") : "", ...inline(line.trim(), label)]);
  made.push(el("p", {}, parts));
  return at;
}

function begins(lines, at) {
  const line = lines[at];
  return FENCE.test(line) || ITEM.test(line) || /^\s*(?:#{1,6}\s|>)/u.test(line) || isTable(lines, at);
}

function code(lines, at, fence, made) {
  const from = at + 1;
  at = from;
  while (at < lines.length && !lines[at].trim().startsWith(fence[1])) at += 1;
  made.push(el("pre", { tabindex: 0 }, el("code", {}, lines.slice(from, at).join("\n"))));
  return at + 1;
}

function quote(lines, at, label, made, depth) {
  const inner = [];
  for (; at < lines.length && /^\s*>/u.test(lines[at]); at += 1) inner.push(lines[at].replace(/^\s*> ?/u, ""));
  made.push(el("blockquote", {}, blocks(inner, label, depth + 1)));
  return at;
}

function list(lines, at, label, made, depth) {
  const [, space, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/u.test(mark);
  const root = el(ordered ? "ol" : "ul", ordered && mark !== "1." ? { start: Number.parseInt(mark, 10) } : {});
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length !== space.length || /\d/u.test(item[2]) !== ordered) break;
    const node = el("li", {}, inline(item[3], label));
    const inner = [];
    at += 1;
    while (at < lines.length && (/^\s{2,}\S/u.test(lines[at]) ? lines[at].search(/\S/u) > space.length : false)) {
      inner.push(lines[at]);
      at += 1;
    }
    if (inner.length && depth < 8) node.append(...blocks(dedented(inner), label, depth + 1));
    else if (inner.length) node.append(inner.join("\n"));
    root.append(node);
  }
  made.push(root);
  return at;
}

function dedented(lines) {
  const width = Math.min(...lines.map((line) => line.search(/\S/u)));
  return lines.map((line) => line.slice(width));
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DIVIDER.test(lines[at + 1]);
}

function cells(line) {
  return line.trim().replace(/^\||(?<!\\)\|$/gu, "").split(/(?<!\\)\|/u).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function table(lines, at, label, made) {
  const head = cells(lines[at]);
  const marks = cells(lines[at + 1]);
  const row = (tag, values) =>
    el("tr", {}, head.map((_, place) => el(tag, right[place] ? { class: "num" } : {}, inline(values[place] ?? "", label))));
  const body = [];
  at += 2;
  for (; at < lines.length && lines[at].includes("|") && lines[at].trim(); at += 1) body.push(cells(lines[at]));
  const right = head.map((_, place) => isRight(marks[place] ?? "", body.map((values) => values[place] ?? "")));
  const grid = el("table", {}, el("thead", {}, row("th", head)), el("tbody", {}, body.map((values) => row("td", values))));
  made.push(el("div.table-box", { tabindex: 0, role: "region" }, grid));
  return at;
}

/** Whether a column stands on the right: by its mark in the divider, or, when that says nothing, for its numbers. */
function isRight(mark, column) {
  if (mark.includes(":")) return /^-+:$/u.test(mark);
  const said = column.map((cell) => cell.replace(LABELS, "").replaceAll("*", "").trim()).filter((cell) => !NOTHING.test(cell));
  return said.length > 0 && said.every((cell) => NUMBER.test(cell));
}

function inline(text, label) {
  if (text.length > LONGEST) return [text];
  const made = [];
  let done = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > done) made.push(text.slice(done, found.index));
    const [whole, , mono, bold, italic, labels] = found;
    if (mono !== undefined) made.push(el("code", {}, mono.trim() || mono));
    else if (bold !== undefined) made.push(el("strong", {}, inline(bold, label)));
    else if (italic !== undefined) made.push(el("em", {}, inline(italic, label)));
    else made.push(...labels.split(",").map((each) => label(each.trim())));
    done = found.index + whole.length;
  }
  if (done < text.length) made.push(text.slice(done));
  return made;
}
