import { describe, expect, test } from "vitest";

import { kindOf, momentOf } from "./columns";
import { asTsv } from "./copied";
import { formsOf } from "./forms";
import { specOf } from "./spec";
import type { Cell } from "./result";

const marks = (columns: string[], rows: Cell[][]) =>
  formsOf(columns, rows).map(
    ({ mark, x, y, color, beside }) => `${mark} ${x} ${[y, ...beside].join("+")}${color === null ? "" : ` ${color}`}`,
  );

describe("kinds of columns", () => {
  test.each<[string, Cell[], string]>([
    ["launches", [1, 2.5, null], "number"],
    ["price", ["12.50", "3.00"], "number"],
    ["total", ["9007199254740993", "1"], "number"],
    ["customer_id", ["9007199254740993", "1"], "id"],
    ["paid", [1, 2], "number"],
    ["id", [1, 2], "id"],
    ["zip", ["01234", "10115"], "text"],
    ["phone", ["13800138000"], "text"],
    ["year", [1999, 2024], "year"],
    ["年份", [2024], "year"],
    ["year", [1, 2], "number"],
    ["y", ["1999", "2024", null], "year"],
    ["zip", ["1999", "2024"], "text"],
    ["y", ["1999", "3024"], "text"],
    ["day", ["2024-01-05", null], "time"],
    ["at", ["2024-01-05 10:00:00+00", "2024-01-05T10:00:00.5+05:30"], "time"],
    ["month", ["2024-01"], "time"],
    ["ok", [true, false], "boolean"],
    ["x", [null], "text"],
    ["x", [1, "a"], "text"],
    ["x", [{ a: 1 }], "text"],
    ["x", [1, "NaN"], "number"],
  ])("%s %j", (name, cells, kind) => {
    expect(kindOf(name, cells)).toBe(kind);
  });

  test.each([
    ["2024-01-05 10:00:00+00", "2024-01-05T10:00:00.000Z"],
    ["2024-01-05 10:00:00.25+0530", "2024-01-05T04:30:00.250Z"],
    ["2024-01-05T10:00:00-08:00", "2024-01-05T18:00:00.000Z"],
    ["2024-01-05T10:00:00", "2024-01-05T10:00:00.000Z"],
    ["2024-01-05T10:00:00Z", "2024-01-05T10:00:00.000Z"],
    ["2024-01-05", "2024-01-05T00:00:00.000Z"],
    ["2024-01", "2024-01-01T00:00:00.000Z"],
    ["2024-13-05", undefined],
    ["soon", undefined],
  ])("the moment %s", (text, iso) => {
    expect(momentOf(text)?.toISOString()).toBe(iso);
  });
});

describe("cells", () => {
  test("a copy for a spreadsheet", () => {
    expect(
      asTsv(
        ["a", "b"],
        [
          [1, null],
          ["x\ty", 'say "hi"'],
          ["", "9007199254740993"],
        ],
      ),
    ).toBe('a\tb\n1\t\n"x\ty"\t"say ""hi"""\n\t9007199254740993');
  });

  test("a copy keeps the last digit of a whole number", () => {
    expect(asTsv(["id"], [[1700000000000001], [1700000000000002], [52838.549999999996]])).toBe(
      "id\n1700000000000001\n1700000000000002\n52838.55",
    );
  });
});

describe("forms of charts", () => {
  test.each<[string, string[], Cell[][], string[]]>([
    [
      "years",
      ["year", "n"],
      [
        [2020, 1],
        [2021, 2],
      ],
      ["line 0 1", "bar 0 1", "area 0 1"],
    ],
    [
      "days with series",
      ["day", "site", "n"],
      [
        ["2024-01-01", "a", 1],
        ["2024-01-01", "b", 2],
        ["2024-01-02", "a", 3],
      ],
      ["line 0 2 1", "bar 0 2 1", "area 0 2 1"],
    ],
    [
      "names",
      ["country", "n"],
      [
        ["China", 15],
        ["France", 4],
      ],
      ["bar 0 1", "arc 0 1"],
    ],
    [
      "names, one below zero",
      ["country", "n"],
      [
        ["China", 15],
        ["France", -4],
      ],
      ["bar 0 1"],
    ],
    [
      "names in groups",
      ["country", "kind", "n"],
      [
        ["China", "a", 15],
        ["China", "b", 4],
        ["France", "a", 1],
      ],
      ["bar 0 2 1"],
    ],
    [
      "years, measures alike",
      ["year", "income", "cost"],
      [
        [2020, 10, 8],
        [2021, 20, 9],
      ],
      ["line 0 1+2", "bar 0 1+2"],
    ],
    [
      "years, measures far apart",
      ["year", "income", "share"],
      [
        [2020, 10, 0.1],
        [2021, 20, 0.2],
      ],
      ["line 0 1", "bar 0 1", "area 0 1"],
    ],
    [
      "names, measures alike",
      ["city", "income", "cost"],
      [
        ["Bonn", 10, 8],
        ["Köln", 20, 9],
      ],
      ["bar 0 1+2", "arc 0 1"],
    ],
    [
      "names twice",
      ["country", "n"],
      [
        ["China", 15],
        ["China", 4],
      ],
      [],
    ],
    [
      "numbers",
      ["mass", "cost"],
      [
        [1, 2],
        [2, 3],
      ],
      ["point 0 1"],
    ],
    ["one row", ["n", "m"], [[1, 2]], []],
    [
      "no numbers",
      ["a", "b"],
      [
        ["x", "y"],
        ["z", "y"],
      ],
      [],
    ],
    [
      "ids",
      ["id", "name"],
      [
        [1, "y"],
        [2, "z"],
      ],
      [],
    ],
  ])("%s", (_, columns, rows, found) => {
    expect(marks(columns, rows)).toEqual(found);
  });

  test("each measure has its mark and its colour", () => {
    const columns = ["year", "income", "cost"];
    const spec = specOf({ mark: "bar", x: 0, y: 1, color: null, beside: [2] }, columns, [[2020, 10, "8.5"]]) as {
      data: { values: unknown };
      encoding: Record<string, { field: string }>;
    };
    expect(spec.data.values).toEqual([
      { c0: "2020", measure: "income", value: 10 },
      { c0: "2020", measure: "cost", value: 8.5 },
    ]);
    expect(Object.fromEntries(Object.entries(spec.encoding).map(([channel, { field }]) => [channel, field]))).toEqual({
      x: "c0",
      y: "value",
      color: "measure",
      xOffset: "measure",
    });
  });

  test("rows of one place are added up, sorted and stacked as was chosen", () => {
    const columns = ["city", "kind", "n"];
    const rows = [
      ["Köln", "a", 1],
      ["Bonn", "a", 5],
      ["Köln", "b", 2],
      ["Bonn", "b", 9],
    ];
    const drawn = (rest: object) =>
      specOf({ mark: "bar", x: 0, y: 2, color: null, beside: [], ...rest }, columns, rows) as {
        usermeta?: unknown;
        data: { values: Record<string, unknown>[] };
        encoding: Record<string, { field: string; stack?: string }>;
      };
    expect(drawn({ sort: "most" }).data.values).toEqual([
      { c0: "Bonn", c2: 14 },
      { c0: "Köln", c2: 3 },
    ]);
    expect(drawn({}).usermeta).toEqual({ sum: "c2" });
    expect(drawn({ color: 1 }).usermeta).toBeUndefined();
    expect(drawn({ color: 1, sort: "name" }).data.values.map(({ c2 }) => c2)).toEqual([5, 9, 1, 2]);
    expect(drawn({ color: 1, sort: "least" }).data.values.map(({ c2 }) => c2)).toEqual([1, 2, 5, 9]);
    expect(drawn({ color: 1, stack: "grouped" }).encoding["xOffset"]?.field).toBe("c1");
    expect(drawn({ color: 1, stack: "normalize" }).encoding["y"]?.stack).toBe("normalize");
    expect(drawn({ x: 1, color: 0, mark: "line" }).encoding["xOffset"]).toBeUndefined();
  });

  test("long names lie", () => {
    const columns = ["name", "n"];
    const along = (name: string) =>
      (
        specOf({ mark: "bar", x: 0, y: 1, color: null, beside: [] }, columns, [
          ["a", 1],
          ["b", 2],
          [name, 3],
        ]) as { encoding: { y: { field: string } } }
      ).encoding.y.field;
    expect([along("c"), along("A name that is longer than what stands upright")]).toEqual(["c1", "c0"]);
  });

  test("too many names are no chart", () => {
    expect(
      marks(
        ["name", "n"],
        Array.from({ length: 61 }, (_, n) => [`name ${n}`, n]),
      ),
    ).toEqual([]);
  });

  test("a timestamptz has its values, and numbers that are texts are numbers", () => {
    const columns = ["at", "sum"];
    const rows = [
      ["2024-01-05 10:00:00+00", "9007199254740993"],
      ["2024-01-06 10:00:00+00", "12"],
    ];
    const [form] = formsOf(columns, rows);
    const spec = specOf(form!, columns, rows) as { data: { values: unknown }; encoding: { x: object } };
    expect(spec.data.values).toEqual([
      { c0: "2024-01-05T10:00:00.000Z", c1: 9007199254740992 },
      { c0: "2024-01-06T10:00:00.000Z", c1: 12 },
    ]);
    expect(spec.encoding.x).toEqual({ field: "c0", title: "at", type: "temporal", scale: { type: "utc" } });
  });
});
