// Puts receipts into an answer's Markdown: a plugin for the tree of HTML that react-markdown makes, and the count of the
// numbers for the footer. Both walk the same way, so that the footer counts what is seen.

import type { Element, ElementContent, Root, Text } from "hast";
import type { Receipt, Tracer } from "./receipts";

/** The elements that stand for a number, and for a label such as `[q1]`. Their `data` says which. */
export const RECEIPT = "x-receipt";
export const CITATION = "x-citation";

const BLOCKS = new Set(["p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "dd", "dt"]);
/** Numbers in them are left alone. Their words may still say which row a sentence means. */
const QUIET = new Set(["code", "pre", "a", "th", "thead"]);
const LABELS = /\[(q\d+(?:\s*,\s*q\d+)*)\]/g;

interface Piece {
  readonly node: Text;
  readonly parent: Element;
  readonly start: number;
  readonly quiet: boolean;
}

/** A rehype plugin: `rehypePlugins={[[receipts, trace]]}`. */
export function receipts(trace: Tracer) {
  return (tree: Root): void => void walk(tree, trace, true);
}

/** The numbers of an answer, traced or not. */
export function numbersOf(tree: Root, trace: Tracer): Receipt[] {
  return walk(tree, trace, false);
}

function walk(tree: Root, trace: Tracer, marks: boolean): Receipt[] {
  const found: Receipt[] = [];
  const visit = (node: Root | Element) => {
    for (const child of node.children) {
      if (child.type !== "element" || child.tagName === "pre" || child.tagName === "thead") continue;
      if (child.tagName === "tr" || (BLOCKS.has(child.tagName) && !child.children.some(isBlock)))
        found.push(...ofBlock(child, trace, marks));
      else visit(child);
    }
  };
  visit(tree);
  return found;
}

const isBlock = (node: ElementContent) =>
  node.type === "element" && (BLOCKS.has(node.tagName) || ["ul", "ol", "table", "blockquote"].includes(node.tagName));

function ofBlock(block: Element, trace: Tracer, marks: boolean): Receipt[] {
  const pieces: Piece[] = [];
  let text = "";
  const collect = (parent: Element, quiet: boolean) => {
    for (const child of parent.children) {
      if (child.type === "text") {
        pieces.push({ node: child, parent, start: text.length, quiet });
        text += child.value;
      } else if (child.type === "element") {
        collect(child, quiet || QUIET.has(child.tagName));
        if (child.tagName === "td" || child.tagName === "br") text += "\t";
      }
    }
  };
  collect(block, false);
  const inside = (receipt: Receipt) =>
    pieces.find(
      ({ start, node, quiet }) => !quiet && receipt.start >= start && receipt.start < start + node.value.length,
    );
  const found = trace(text, block.tagName === "tr").flatMap((receipt) => {
    const piece = inside(receipt);
    return piece ? [{ receipt, piece }] : [];
  });
  if (marks)
    for (const piece of pieces.filter(({ quiet }) => !quiet))
      split(
        piece,
        found.filter((each) => each.piece === piece).map(({ receipt }) => receipt),
      );
  return found.map(({ receipt }) => receipt);
}

/** Puts elements in the place of the numbers that are traced, and of labels. */
function split({ node, parent, start }: Piece, found: readonly Receipt[]) {
  const numbers = found
    .filter(({ source }) => source !== null)
    .map((receipt) => ({
      from: receipt.start - start,
      to: Math.min(receipt.end - start, node.value.length),
      name: RECEIPT,
      data: { receipt },
    }));
  const labels = [...node.value.matchAll(LABELS)].map((match) => ({
    from: match.index,
    to: match.index + match[0].length,
    name: CITATION,
    data: { labels: (match[1] ?? "").split(/\s*,\s*/) },
  }));
  const cuts = [...numbers, ...labels].toSorted((a, b) => a.from - b.from);
  if (!cuts.length) return;
  const parts: ElementContent[] = [];
  let at = 0;
  for (const { from, to, name, data } of cuts) {
    if (from > at) parts.push({ type: "text", value: node.value.slice(at, from) });
    parts.push({
      type: "element",
      tagName: name,
      properties: {},
      data,
      children: [{ type: "text", value: node.value.slice(from, to) }],
    } as Element);
    at = to;
  }
  if (at < node.value.length) parts.push({ type: "text", value: node.value.slice(at) });
  parent.children.splice(parent.children.indexOf(node), 1, ...parts);
}
