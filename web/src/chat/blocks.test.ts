import { expect, it } from "vitest";
import { blocksOf } from "./blocks";

const ANSWER = [
  "There were **41**:\n\n",
  "- one\n\n  more of one\n- two\n\n3. three\n\n",
  "```sql\nSELECT 1\n\nFROM x\n```\n\n",
  "| a | b |\n|---|--:|\n| x | 41 |\n\n",
  "~~~\nopen\n\n```\n~~~\n\n\n",
  "# End\n",
];

const textsOf = (text: string) => blocksOf(text).map((block) => block.text);

it("cuts at blank lines, outside of fences and lists", () => {
  expect(textsOf(ANSWER.join(""))).toEqual(ANSWER);
});

it("cuts a text of which only the last block changes when more follows", () => {
  const text = ANSWER.join("");
  for (let end = 1; end < text.length; end += 1) {
    const blocks = blocksOf(text.slice(0, end));
    expect(blocks.map((block) => block.text).join("")).toBe(text.slice(0, end));
    for (const block of blocks) expect(text.startsWith(block.text, block.start)).toBe(true);
    const later = blocksOf(text.slice(0, end + 1));
    expect(later.slice(0, blocks.length - 1)).toEqual(blocks.slice(0, -1));
  }
});

it("leaves a text with a definition whole", () => {
  const text = "See [it][1].\n\nMore.\n\n[1]: https://example.org\n";
  expect(textsOf(text)).toEqual([text]);
});
