import { expect, test } from "vitest";
import { rowsOf, tableIn } from "./pasted";

const plain = (text: string) => tableIn({ plain: text, html: "" });

test("what a spreadsheet copies is a table", () => {
  const sheet = 'city\tn\r\n"New\r\nYork ""NY"""\t3\r\n北京\t\r\n';
  expect(rowsOf(sheet)).toEqual([
    ["city", "n"],
    ['New\r\nYork "NY"', "3"],
    ["北京", ""],
  ]);
  expect(plain(sheet)).toBe(sheet);
});

test.each(["How many?", "one\ttwo", "a\nb", "a\tb\nc", "\tif x:\n\treturn", 'he said "a\tb"\nand went', ""])(
  "%j is text",
  (text) => expect(plain(text)).toBeNull(),
);
