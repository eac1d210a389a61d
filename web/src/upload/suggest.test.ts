import { expect, test } from "vitest";
import type { TableView } from "../api/types";
import { suggest } from "./suggest";

const table = (
  name: string,
  columns: Record<string, string>,
  rows: TableView["rows"] = [],
  problem: string | null = null,
): TableView => ({
  name,
  columns: Object.entries(columns).map(([column, type]) => ({ name: column, type })),
  rows,
  problem,
});
const SALES = table("sales", { order_id: "BIGINT", city: "VARCHAR", day: "DATE", amount: "DOUBLE" }, [
  [1, "Berlin", "2026-01-01", 3],
]);

test("a table suggests its numbers by its texts and months", () => {
  expect(suggest([SALES])).toEqual([
    { id: "files.askTotal", values: { number: "amount", text: "city" } },
    { id: "files.askMonths", values: { number: "amount" } },
    { id: "files.askAverage", values: { number: "amount", text: "city" } },
  ]);
});

test("tables with a common column suggest a question over both first", () => {
  const people = table("people", { city: "VARCHAR", mayor: "VARCHAR" }, [
    ["Berlin", "Ann"],
    ["Bonn", "Bob"],
  ]);
  expect(suggest([people, SALES])[0]).toEqual({ id: "files.askTotal", values: { number: "amount", text: "mayor" } });
  expect(suggest([table("other", { mayor: "VARCHAR" }), SALES])[0]?.values).toEqual({ number: "amount", text: "city" });
});

test("keys, years, long texts and addresses suggest nothing", () => {
  const keys = table(
    "t",
    { customerId: "BIGINT", 订单编号: "BIGINT", year: "BIGINT", note: "VARCHAR", mail: "VARCHAR" },
    [[1, 2, 2026, "x".repeat(41), "ann@example.org"]],
  );
  expect(suggest([keys])).toEqual([{ id: "files.askRows", values: { table: "t" } }]);
  expect(suggest([table("broken", { a: "DOUBLE" }, [], "It cannot be read.")])).toEqual([]);
});

test("a column that tells no rows apart joins no tables", () => {
  const sales = table(
    "Sales",
    {
      Date: "DATE",
      Branch: "VARCHAR",
      Product: "VARCHAR",
      "Cups / pieces": "BIGINT",
      "Price (€)": "DOUBLE",
      "Discount (%)": "DOUBLE",
      Revenue: "DOUBLE",
    },
    [["2026-01-01", "Uni", "Tea", 2, 3, 0, 6]],
  );
  const staff = table("Staff", { Name: "VARCHAR", Branch: "VARCHAR", "Hourly wage": "DOUBLE" }, [
    ["Ann", "Uni", 14],
    ["Bob", "Uni", 15],
  ]);
  const asked = [
    { id: "files.askTotal", values: { number: "Revenue", text: "Branch" } },
    { id: "files.askMonths", values: { number: "Revenue" } },
    { id: "files.askAverage", values: { number: "Revenue", text: "Product" } },
  ];
  expect(suggest([sales, staff])).toEqual(asked);
  expect(suggest([staff, sales])).toEqual(asked);
  expect(
    suggest([
      table("Staff", { Branch: "VARCHAR", Name: "VARCHAR" }, [
        ["Uni", "Ann"],
        ["Uni", "Bob"],
      ]),
      sales,
    ])[0],
  ).toEqual(asked[0]);
});

test("prices, wages and rates are averaged, and stand behind what is added up", () => {
  const sales = table("销售", {
    日期: "DATE",
    门店: "VARCHAR",
    商品: "VARCHAR",
    数量: "BIGINT",
    单价: "DOUBLE",
    折扣: "DOUBLE",
    营业额: "DOUBLE",
  });
  const staff = table("员工", {
    姓名: "VARCHAR",
    门店: "VARCHAR",
    入职日期: "DATE",
    时薪: "DOUBLE",
    奖金比例: "DOUBLE",
  });
  expect(suggest([staff, sales]).map(({ values }) => values)).toEqual([
    { number: "营业额", text: "门店" },
    { number: "营业额" },
    { number: "营业额", text: "商品" },
  ]);
  expect(suggest([staff])).toEqual([
    { id: "files.askAverage", values: { number: "时薪", text: "门店" } },
    { id: "files.askRows", values: { table: "员工" } },
  ]);
  const goods = table("goods", { kind: "VARCHAR", unitPrice: "DOUBLE", "total price": "DOUBLE", stock: "BIGINT" });
  expect(suggest([goods])[0]?.values).toEqual({ number: "total price", text: "kind" });
});
