import { expect, test } from "vitest";
import { linesOf } from "./look";

test.each([
  ["short", 100, "short"],
  ["Books and printed matter of all kinds", 140, ["Books and printed", "matter of all kinds"]],
  ["一二三四五六七八", 50, ["一二三四", "五六七八"]],
  ["a b c d e f", 7, ["a", "b", "c", "d e f"]],
  ["Unbreakable", 20, "Unbreakable"],
])("%s in lines", (text, room, lines) => {
  expect(linesOf(text, room)).toEqual(lines);
});
