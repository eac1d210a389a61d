// An answer cut into blocks of Markdown, so that while it streams only the last one is parsed again.

/** A block, and where it begins in the whole text. */
export interface Block {
  text: string;
  start: number;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
/** A last line that may become the beginning of an item. */
const MAY_BE_ITEM = /^(?:[-*+]|\d{1,9}[.)]?)$/;
/** A definition stands anywhere, and changes links before it. */
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/**
 * Cuts at blank lines, outside fences and lists. The blocks are the whole text. A block that is not the last one does not
 * change when more text follows.
 */
export function blocksOf(text: string): Block[] {
  if (DEFINITION.test(text)) return [{ text, start: 0 }];
  const blocks: Block[] = [];
  let start = 0;
  let at = 0;
  let fence = "";
  let lists = false;
  let blank = false;
  for (const line of text.split(/(?<=\n)/)) {
    const isBlank = line.trim() === "";
    const begins =
      blank && !isBlank && fence === "" && !(lists && (ITEM.test(line) || MAY_BE_ITEM.test(line) || /^\s/.test(line)));
    if (begins && at > start) {
      blocks.push({ text: text.slice(start, at), start });
      start = at;
    }
    if (begins || at === start) lists = ITEM.test(line);
    fence = fenceAfter(fence, line);
    blank = isBlank;
    at += line.length;
  }
  if (at > start) blocks.push({ text: text.slice(start), start });
  return blocks;
}

/** The fence that is open after a line, given the one that was before. */
function fenceAfter(open: string, line: string): string {
  const mark = FENCE.exec(line)?.[1] ?? "";
  if (open === "") return mark;
  const closes = mark.startsWith(open) && line.trim() === mark;
  return closes ? "" : open;
}
