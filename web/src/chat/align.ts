// Columns of numbers stand on the right, where a table of Markdown does not say where its columns stand.

import type { Element, ElementContent, Root } from "hast";

const NUMBER = /^[-+−]?\p{Sc}?\s?(?:\d{1,3}(?:[,\s'’]\d{3})+|\d+)(?:[.,]\d+)?(?:e[-+]?\d+)?\s?(?:%|\p{Sc})?$/iu;
const NOTHING = /^(?:|-|–|—|null|n\/a)$/iu;
const LABELS = /\[q\d+(?:\s*,\s*q\d+)*\]/g;

/** A rehype plugin. Its cells get `data-number`. */
export function alignNumbers() {
  return (tree: Root) => {
    for (const child of tree.children) if (isElement(child, "table")) alignTable(child);
  };
}

function alignTable(table: Element) {
  const rows = table.children.flatMap((part) =>
    part.type === "element" ? part.children.filter((row) => isElement(row, "tr")) : [],
  );
  const cells = rows.map((row) => row.children.filter((cell) => isElement(cell, "td") || isElement(cell, "th")));
  const [head, ...body] = cells;
  head?.forEach((cell, column) => {
    const texts = body
      .map((row) => textOf(row[column]).replace(LABELS, "").trim())
      .filter((text) => !NOTHING.test(text));
    if (cell.properties["align"] || texts.length === 0 || !texts.every((text) => NUMBER.test(text))) return;
    for (const row of cells) if (row[column]) row[column].properties["dataNumber"] = "";
  });
}

const isElement = (node: ElementContent | Root["children"][number], name: string): node is Element =>
  node.type === "element" && node.tagName === name;

function textOf(node: ElementContent | undefined): string {
  if (node?.type === "text") return node.value;
  return node?.type === "element" ? node.children.map(textOf).join("") : "";
}
