import { describe, expect, test } from "vitest";

import { numerals } from "./numerals";
import { tracer } from "./receipts";
import type { Cell, QueryResult } from "./result";
import { resultsOf } from "./step";
import { emptyRun } from "../stream/reducer";

function result(columns: string[], rows: Cell[][], rest: Partial<QueryResult> = {}): QueryResult {
  return { step: 3, label: "q1", sql: "SELECT 1", columns, rows, total: rows.length, ...rest };
}

const years = result(
  ["year", "launches", "successful", "share"],
  [
    [2015, 76, 71, 0.934],
    [2021, 118, 112, 0.949],
    [2022, 127, 121, 0.953],
    [2023, 135, 129, 0.956],
    [2024, 143, 138, 0.965],
  ],
);
const countries = result(
  ["country", "rockets_count"],
  [
    ["China", 15],
    ["United States", 11],
    ["Russia", 5],
    ["South Korea", 1],
  ],
);

const sales = result(
  ["country", "revenue", "cost"],
  [
    ["France", 1200, 900],
    ["Germany", 3400, 3000],
  ],
);

const one = (cell: Cell, column = "total") => result([column], [[cell]]);

/** Each number with its cell as `row:column value`, or `-`. */
function told(answer: string, results: QueryResult[], isRow = false): string[] {
  return tracer(results)(answer, isRow).map(({ text, source }) => {
    const cells = source?.cells.map(({ row, column }) => `${row}:${column}`).join(" ");
    return source ? `${text}=${cells || source.kind} ${source.value}` : `${text}=-`;
  });
}

const read = (text: string) =>
  numerals(text).map(
    ({ digits, power, percent }) => `${digits.digits}/${digits.places}${power ? `e${power}` : ""}${percent ? "%" : ""}`,
  );

describe("numbers of a text", () => {
  test.each([
    ["1,018 launches, -3.50 and −4", ["1018/0", "-350/2", "-4/0"]],
    ["$1.2M, US$3bn, ¥3.5亿, 12 万, 7k and 4 million", ["12/1e6", "3/0e9", "35/1e8", "12/0e4", "7/0e3", "4/0e6"]],
    ["94.9 %, 5% and ３％", ["949/1%", "5/0%", "3/0%"]],
    ["１２３４", ["1234/0"]],
    ["from 10-20 and 2015–2024", ["10/0", "20/0", "2015/0", "2024/0"]],
    ["9223372036854775807 and 12\u202f345\u202f678", ["9223372036854775807/0", "12345678/0"]],
    ["共 15 枚，占 3.5%，约1.2万亿", ["15/0", "35/1%", "12/1e12"]],
    ["**41** rockets. 5 m", ["41/0", "5/0"]],
  ])("%s", (text, found) => {
    expect(read(text)).toEqual(found);
  });

  test.each([
    "2024-01-05 and 2024-01-05T10:00:00+00",
    "January 5, 2024 or 5 Jan 2024",
    "2024年1月5日",
    "1月",
    "10:30",
    "v1.2.3",
    "the 3rd, No. 4, #5, 第 6 名",
    "Q1 and q3 [q3]",
    "1. first\n2. second",
    "H3, 5GB, 3x",
    "1,5",
    "https://x.y/12",
    "5/1/2024",
  ])("none in %s", (text) => {
    expect(read(text)).toEqual([]);
  });

  test("names are none", () => {
    expect(numerals("Falcon 9 flew 12 times", ["Falcon 9"]).map(({ start, end }) => [start, end])).toEqual([[14, 16]]);
  });
});

describe("traced", () => {
  test("by the row and the column that the sentence names", () => {
    expect(told("The best year was **2024** with 143 launches, 96.5 % successful.", [years])).toEqual([
      "2024=4:0 2024",
      "143=4:1 143",
      "96.5 %=4:3 0.965",
    ]);
    expect(told("China has 15 rockets, South Korea has 1.", [countries])).toEqual(["15=0:1 15", "1=3:1 1"]);
    expect(
      told("中国有 15 枚。", [
        result(
          ["国家", "火箭数"],
          [
            ["中国", 15],
            ["法国", 4],
          ],
        ),
      ]),
    ).toEqual(["15=0:1 15"]);
  });

  test("as the ends of a range", () => {
    const flown = result(
      ["year", "launches_count"],
      [
        ["1990", 40],
        ["2001", 18],
        ["2012", 81],
        ["2025", 73],
      ],
    );
    expect(told("1990–2025: **18** to **81** launches a year, most in **2012** [q1].", [flown])).toEqual([
      "1990=0:0 1990",
      "2025=3:0 2025",
      "18=1:1 18",
      "81=2:1 81",
      "2012=2:0 2012",
    ]);
    expect(told("1990–2025 年：每年 launches 数 **18** 到 **81**，**2012** 年最多 [q1]。", [flown])).toEqual([
      "1990=0:0 1990",
      "2025=3:0 2025",
      "18=1:1 18",
      "81=2:1 81",
      "2012=2:0 2012",
    ]);
    expect(told("19 to 81 launches.", [flown])).toEqual(["19=-", "81=2:1 81"]);
    const shares = result(
      ["kind", "orders_percent"],
      [
        ["card", 62.5],
        ["cash", 30],
        ["none", 7.5],
      ],
    );
    expect(told("3 kinds: 7.5% to 62.5% of orders, highest: card.", [shares])).toEqual([
      "3=rows 3",
      "7.5%=2:1 7.5",
      "62.5%=0:1 62.5",
    ]);
  });

  test("as the number of rows, where it begins a sentence or is found", () => {
    expect(told("**4** countries: **1** to **15** rockets, most: **China**.", [countries])).toEqual([
      "4=rows 4",
      "1=3:1 1",
      "15=0:1 15",
    ]);
    expect(told("Found 4 launchers. 找到 4 个国家。", [countries])).toEqual(["4=rows 4", "4=rows 4"]);
    expect(told("There were 4 attempts, and 4 failed.", [countries])).toEqual(["4=-", "4=-"]);
    expect(
      told("2 kinds: 7 calls each.", [
        result(
          ["kind", "calls_count"],
          [
            ["a", 7],
            ["b", 7],
          ],
        ),
      ]),
    ).toEqual(["2=rows 2", "7=0:1 1:1 7"]);
  });

  test("in a row of a table", () => {
    expect(told("2021 118 112 94.9 %", [years], true)).toEqual([
      "2021=1:0 2021",
      "118=1:1 118",
      "112=1:2 112",
      "94.9 %=1:3 0.949",
    ]);
    expect(told("Russia 5", [countries], true)).toEqual(["5=2:1 5"]);
  });

  test("by rounding as it is shown", () => {
    expect(told("It is 1.9.", [one(1.87)])).toEqual(["1.9=0:0 1.87"]);
    expect(told("It is 1.8.", [one(1.87)])).toEqual(["1.8=-"]);
    expect(told("About 12.4万 or 123 thousand or 0.12M.", [one(123_456)])).toEqual([
      "12.4万=-",
      "123 thousand=0:0 123456",
      "0.12M=0:0 123456",
    ]);
    expect(told("About 12.35万.", [one(123_456)])).toEqual(["12.35万=0:0 123456"]);
    expect(told("$37.8 million", [one(37.8, "cost_million_usd")])).toEqual(["$37.8 million=0:0 37.8"]);
    expect(told("37.8 million", [one(37.8, "cost")])).toEqual(["37.8 million=-"]);
    expect(told("5,234 in all", [one("5233.6")])).toEqual(["5,234=0:0 5233.6"]);
  });

  test("exact beyond 2^53", () => {
    const big = result(["total_bytes"], [["9007199254740993"]]);
    expect(told("9,007,199,254,740,993", [big])).toEqual(["9,007,199,254,740,993=0:0 9007199254740993"]);
    expect(told("9,007,199,254,740,992", [big])).toEqual(["9,007,199,254,740,992=-"]);
  });

  test("to the row whose name stands nearest before, or behind where none stands before", () => {
    expect(told("China (15) and the United States (11) lead, then Russia with 5.", [countries])).toEqual([
      "15=0:1 15",
      "11=1:1 11",
      "5=2:1 5",
    ]);
    expect(told("15 rockets are from China.", [countries])).toEqual(["15=0:1 15"]);
    expect(told("In 2021 there were 118 launches, in 2024 143.", [years])).toEqual([
      "2021=1:0 2021",
      "118=1:1 118",
      "2024=4:0 2024",
      "143=4:1 143",
    ]);
  });

  test("by the unit of a column", () => {
    const costs = result(
      ["country", "cost_million_usd"],
      [
        ["China", 37.8],
        ["France", 12.5],
      ],
    );
    expect(told("In millions, China costs 37.8.", [costs])).toEqual(["37.8=0:1 37.8"]);
    expect(told("China 37.8", [costs], true)).toEqual(["37.8=0:1 37.8"]);
    expect(
      told("France: 100 %, China: 50 %", [
        result(
          ["country", "share"],
          [
            ["China", 0.5],
            ["France", 1],
          ],
        ),
      ]),
    ).toEqual(["100 %=1:1 1", "50 %=0:1 0.5"]);
    expect(
      told("China: 0.5 %", [
        result(
          ["country", "percent"],
          [
            ["China", 0.5],
            ["France", 99.5],
          ],
        ),
      ]),
    ).toEqual(["0.5 %=0:1 0.5"]);
  });

  test("as a count of rows", () => {
    expect(told("only the first 2 rows", [result(["id"], [[100], [7]], { total: 1818 })])).toEqual(["2=rows 2"]);
    expect(told("`launches`: showing 2 of 1818 rows", [result(["id"], [[100], [7]], { total: 1818 })])).toEqual([
      "2=rows 2",
      "1818=rows 1818",
    ]);
    expect(told("number of rockets: 4 rows [q1]", [countries])).toEqual(["4=rows 4"]);
    expect(told("共 4 行", [countries])).toEqual(["4=rows 4"]);
  });

  test("to the result that the block cites, else to the newest", () => {
    const before = result(["n"], [[41]], { step: 1, label: "q1" });
    const after = result(["n"], [[41]], { step: 9, label: "q2" });
    const step = (text: string) => tracer([before, after])(text)[0]?.source?.step;
    expect(step("There are 41 [q1].")).toBe(1);
    expect(step("There are 41.")).toBe(9);
  });

  test("64-bit ids only beside what they name", () => {
    const ids = result(
      ["id", "name"],
      [
        ["9007199254740993", "Ada"],
        ["9007199254740995", "Bo"],
      ],
    );
    expect(told("Ada is 9007199254740993.", [ids])).toEqual(["9007199254740993=0:0 9007199254740993"]);
  });
});

describe("not traced", () => {
  test.each([
    ["There are 3 reasons, and 5 of them are bad.", [countries]],
    ["The top 5 rockets are below.", [countries]],
    ["It grew by 15%.", [countries]],
    ["About 1.9 times as many.", [years]],
    ["In all 599 launches.", [years]],
    [
      "The first 100 are shown.",
      [
        result(
          ["id", "n"],
          [
            [100, 7],
            [101, 8],
          ],
        ),
      ],
    ],
    ["China has 11 rockets and the United States have 15.", [countries]],
    ["South Korea has 15 rockets.", [countries]],
    [
      "France has 143 launches.",
      [
        result(
          ["country", "n"],
          [
            ["France", 90],
            ["China", 143],
          ],
        ),
      ],
    ],
    [
      "China: 0.5 %, France 1 %.",
      [
        result(
          ["country", "share"],
          [
            ["China", 0.5],
            ["France", 1],
          ],
        ),
      ],
    ],
    ["China costs 37.8 USD.", [result(["country", "cost_million_usd"], [["China", 37.8]])]],
    ["37.8 million", [one(37_800_000, "cost_million_usd")]],
    [
      "The table has 100 rows.",
      [
        result(
          ["id"],
          Array.from({ length: 100 }, (_, at) => [at + 500]),
          { total: 5000 },
        ),
      ],
    ],
    ["The revenue was $1,234 in total.", [result(["id"], [[7], [8]], { total: 1234 })]],
    [
      "China had 150 failures.",
      [
        result(
          ["country", "launches", "failures"],
          [
            ["China", 150, 12],
            ["France", 90, 3],
          ],
        ),
      ],
    ],
    ["China has 15 [q2].", [countries, result(["country", "n"], [["China", 16]], { label: "q2" })]],
    ["France had a revenue of 900.", [sales]],
    ["Italy had a revenue of 3400.", [sales]],
    [
      "意大利的收入是 3400。",
      [
        result(
          ["国家", "收入"],
          [
            ["法国", 1200],
            ["德国", 3400],
          ],
        ),
      ],
    ],
    ["Germany had a revenue of 3400 [q9].", [sales]],
    ["The lowest revenue was 3400.", [sales]],
    ["Since 2016 there were 143 launches.", [years]],
    ["Sales rose 37.5%.", [one(0.375, "avg_weight_kg")]],
    ["1,234.5 kg", [result(["mass"], [[1234.4], [1234.6]])]],
  ])("%s", (answer, results) => {
    expect(tracer(results)(answer).every(({ source }) => source === null)).toBe(true);
  });

  test("years that no result has are words", () => {
    expect(told("Since 2016 the most were 143 launches.", [years])).toEqual(["143=4:1 143"]);
  });

  test("what may be a year counts where it is none", () => {
    expect(told("Since 2016 there were 2011 customers and 1950 stores, 2020 家客户。", [years])).toEqual([
      "2011=-",
      "1950=-",
      "2020=-",
    ]);
  });

  test("years count as years in words of time", () => {
    for (const text of [
      "2020 had 64 launches.",
      "For 2020 there were 64.",
      "For 2019 and 2020, 64.",
      "Q1 2020 had 64.",
      "Fiscal 2020 ended with 64.",
      "2020全年64次。",
      "2019和2020年共64次。",
    ]) {
      expect(told(text, [one(64, "launches")])).toEqual(["64=0:0 64"]);
    }
    expect(told("There were 2015 customers.", [years])).toEqual(["2015=-"]);
  });

  test("a share beside numbers of other columns", () => {
    const flown = result(
      ["year", "launches", "successful", "share"],
      [
        [2016, 70, 66, 0.943],
        [2017, 81, 78, 0.963],
      ],
    );
    expect(told("In 2017, 78 of 81 launches were successful (96.3%).", [flown]).at(-1)).toBe("96.3%=1:3 0.963");
  });

  test("by the words right before it, not by those further away", () => {
    const orders = result(
      ["name", "order_count", "total_revenue"],
      [
        ["Alice", 12, "12500.5"],
        ["Bob", 3, "900.25"],
      ],
    );
    expect(told("Alice's orders brought in 12500.5.", [orders])).toEqual(["12500.5=0:2 12500.5"]);
    expect(told("Total revenue ranges from 900.25 to 12500.5.", [orders])).toEqual([
      "900.25=1:2 900.25",
      "12500.5=0:2 12500.5",
    ]);
    expect(told("The lowest revenue was 12500.5.", [orders])).toEqual(["12500.5=-"]);
    expect(told("**Interest**: a revenue of 900.25 by Dave.", [orders])).toEqual(["900.25=-"]);
    expect(
      told("最近的收入是 3400。", [
        result(
          ["国家", "收入"],
          [
            ["法国", 1200],
            ["德国", 3400],
          ],
        ),
      ]),
    ).toEqual(["3400=-"]);
  });

  test("the row that is the most needs no name", () => {
    expect(told("The highest revenue was 3400.", [sales])).toEqual(["3400=1:1 3400"]);
    expect(
      told("收入最高的是 3400。", [
        result(
          ["国家", "收入"],
          [
            ["法国", 1200],
            ["德国", 3400],
          ],
        ),
      ]),
    ).toEqual(["3400=1:1 3400"]);
  });

  test("rows that are alike are all told", () => {
    const alike = result(
      ["site", "launches"],
      [
        ["A1", 143],
        ["B2", 143],
      ],
    );
    expect(told("Two sites had 143 launches.", [alike])).toEqual(["143=0:1 1:1 143"]);
  });
});

test("a label of a query whose run is not loaded shows its SQL, and traces no number", () => {
  const cites = [
    { query: "q7", sql: "SELECT 7 AS n", columns: ["n"] },
    { query: "q8", sql: "SELECT 8 AS n", columns: ["n"] },
  ];
  const turn = { id: "a", question: null, answers: null, said: [], steps: [], run: { ...emptyRun("r"), cites } };
  const found = resultsOf([turn], turn, "It is 7 [q7].");
  expect(found.map(({ label, sql, step }) => [label, sql, step])).toEqual([["q7", "SELECT 7 AS n", null]]);
  expect(told("It is 7 [q7].", found)).toEqual(["7=-"]);
});
