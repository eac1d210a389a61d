// The rule of formats, by the cases that the server's tests read too.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Cell } from "../results/result";
import { type ColumnFormat, formatOfJson } from "./columnFormat";
import { formatsOf, guessed } from "./guess";
import { shortened, written } from "./written";

interface Cases {
  guessed: [string, Cell[], ColumnFormat][];
  written: [Cell, ColumnFormat, string][];
  shortened: [Cell, ColumnFormat, string, string][];
}

const cases = JSON.parse(readFileSync(new URL("../../../tests/formats.json", import.meta.url), "utf8")) as Cases;

describe("formats", () => {
  test.each(cases.guessed)("of %s %j", (name, cells, format) => {
    expect(guessed(name, cells)).toEqual(format);
  });

  test.each(cases.written)("write %j by %j", (cell, format, text) => {
    expect(written(cell, format, "en")).toBe(text);
    expect(written(cell, format, "zh-CN")).toBe(text);
  });

  test.each(cases.shortened)("shorten %j by %j", (cell, format, english, chinese) => {
    expect([shortened(cell, format, "en"), shortened(cell, format, "zh-CN")]).toEqual([english, chinese]);
  });

  test("another language has its own signs", () => {
    expect(written("-1234.50", { kind: "number" }, "de")).toBe("-1.234,50");
  });

  test("a given format needs no places, and fits numbers alone", () => {
    const rows = [
      [12, "a", 3.5],
      [3, "b", null],
    ];
    const given = { n: { kind: "currency", unit: "€" }, name: { kind: "currency", unit: "€" } } as const;
    expect(formatsOf(["n", "name", "x"], rows, given)).toEqual([
      { kind: "currency", unit: "€", places: 0 },
      { kind: "text" },
      { kind: "number", places: 1 },
    ]);
  });

  test.each([
    null,
    "number",
    { kind: "money" },
    { kind: "unit", unit: 3 },
    { kind: "number", places: 11 },
    { kind: "number", places: 0.5 },
  ])("%j is none", (value) => {
    expect(formatOfJson(value)).toBeNull();
  });
});
