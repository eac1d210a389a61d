import { expect, test } from "vitest";
import { headingOf } from "./heading";

const words = (locale: string) => ({
  locale,
  count: "count",
  countOf: (field: string) => `number of ${field}`,
  aggregate: (aggregate: string, field: string) => `${aggregate} of ${field}`,
});

test.each([
  ["launch_year", "launch year", "launch year"],
  ["unitPrice", "unit price", "unit price"],
  ["COUNT(*)", "count", "count"],
  ['avg("cost")', "mean of cost", "mean of cost"],
  ["launches_count", "number of launches", "number of launches"],
  ["head_count", "head count", "number of head"],
  ["average_unit_price", "average unit price", "mean of unit price"],
  ["total_amount", "total amount", "sum of amount"],
  ["a + b", "a + b", "a + b"],
])("%s", (column, english, chinese) => {
  expect([headingOf(column, words("en")), headingOf(column, words("zh-CN"))]).toEqual([english, chinese]);
});
