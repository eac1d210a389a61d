import { expect, test } from "vitest";
import { candidatesIn, parametersOf, placesIn, valueAs } from "./places";

test("the places of a query are found, each once", () => {
  expect(placesIn("SELECT {{ a }}, {{b}}, {{a}}, {{1x}}")).toEqual(["a", "b"]);
});

test("values that columns are compared with can be changed", () => {
  const sql = `SELECT * FROM t WHERE s."day" BETWEEN '2026-01-01' AND '2026-02-01' AND amount >= 3.5 AND 城市 = 'O''Hare'`;
  const found = candidatesIn(sql);
  expect(found.map(({ literal, parameter }) => [literal, parameter])).toEqual([
    ["'2026-01-01'", { name: "day_from", label: "day ≥", kind: "date", value: "2026-01-01" }],
    ["'2026-02-01'", { name: "day_to", label: "day ≤", kind: "date", value: "2026-02-01" }],
    ["3.5", { name: "amount_from", label: "amount ≥", kind: "number", value: 3.5 }],
    ["'O''Hare'", { name: "value", label: "城市", kind: "text", value: "O'Hare" }],
  ]);
  expect(found[1]?.sql).toBe(sql.replace("'2026-02-01'", "{{day_to}}"));
  expect(found[3]?.sql).toBe(sql.replace("'O''Hare'", "{{value}}"));
  const again = candidatesIn("SELECT * FROM t WHERE day = {{day}} OR day = '2026-01-01'");
  expect(again.map(({ parameter }) => parameter.name)).toEqual(["day2"]);
});

test("parameters are kept while their place stands, and new places are texts", () => {
  const since = { name: "since", label: "Since", kind: "date", value: "2026-01-01" } as const;
  expect(parametersOf("SELECT {{since}} {{city}}", [since, { ...since, name: "gone" }])).toEqual([
    since,
    { name: "city", label: "", kind: "text", value: "" },
  ]);
  expect([
    valueAs("number", "12"),
    valueAs("number", "x"),
    valueAs("date", "2026-01-01"),
    valueAs("date", 3),
    valueAs("text", 3),
  ]).toEqual([12, 0, "2026-01-01", "", "3"]);
});
