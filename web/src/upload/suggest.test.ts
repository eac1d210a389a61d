import { expect, test } from "vitest";
import type { TableView } from "../api/types";
import { suggest } from "./suggest";

const table = (name: string, columns: Record<string, string>, rows: TableView["rows"] = [], problem: string | null = null): TableView => ({
  name,
  columns: Object.entries(columns).map(([column, type]) => ({ name: column, type })),
  rows,
  problem,
});
const SALES = table("sales", { order_id: "BIGINT", city: "VARCHAR", day: "DATE", amount: "DOUBLE" }, [[1, "Berlin", "2026-01-01", 3]]);

test("a table suggests its numbers by its texts and months", () => {
  expect(suggest([SALES])).toEqual([
    { id: "files.askTotal", values: { number: "amount", text: "city" } },
    { id: "files.askMonths", values: { number: "amount" } },
    { id: "files.askAverage", values: { number: "amount", text: "city" } },
  ]);
});

test("tables with a common column suggest a question over both first", () => {
  const people = table("people", { city: "VARCHAR", mayor: "VARCHAR" });
  expect(suggest([people, SALES])[0]).toEqual({ id: "files.askTotal", values: { number: "amount", text: "mayor" } });
  expect(suggest([table("other", { mayor: "VARCHAR" }), SALES])[0]?.values).toEqual({ number: "amount", text: "city" });
});

test("keys, years, long texts and addresses suggest nothing", () => {
  const keys = table("t", { customerId: "BIGINT", 订单编号: "BIGINT", year: "BIGINT", note: "VARCHAR", mail: "VARCHAR" }, [[1, 2, 2026, "x".repeat(41), "ann@example.org"]]);
  expect(suggest([keys])).toEqual([{ id: "files.askRows", values: { table: "t" } }]);
  expect(suggest([table("broken", { a: "DOUBLE" }, [], "It cannot be read.")])).toEqual([]);
});
