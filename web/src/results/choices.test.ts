import { expect, test } from "vitest";

import type { Step } from "../stream/types";
import { choicesOf, isSmall, renamed } from "./choices";
import type { QueryResult } from "./result";

const MANY: QueryResult = {
  step: 1,
  label: "q1",
  sql: "SELECT a, n FROM t",
  columns: ["a", "n"],
  rows: [
    ["x", 1],
    ["y", 2],
  ],
  total: 1001,
};
const FEW = { ...MANY, total: 1000 };
const FORM = { mark: "bar", x: 0, y: 1, color: null, beside: [] } as const;
const chartOf = (title: string, index: number) => ({ index, chart: { mark: "line", title } }) as unknown as Step;
const CHARTS = [chartOf("One", 2), chartOf("Two", 3)];

test("a title alone leaves a chart of the model as it is", () => {
  const [, second] = choicesOf(MANY, CHARTS);
  const edit = second && renamed(second, "Mine");
  expect(edit).toEqual({ form: null, title: "Mine", of: "made1" });
  const drawn = choicesOf(MANY, CHARTS, edit ?? null);
  expect(drawn.map(({ title, form, step }) => [title, form, step])).toEqual([
    ["One", null, 2],
    ["Mine", null, 3],
  ]);
});

test("a form keeps its title with it", () => {
  const [own] = choicesOf(FEW, CHARTS, { form: FORM, title: "Mine" });
  expect(own && renamed(own, "Other")).toEqual({ form: FORM, title: "Other" });
});

test("a form draws no result of which the page has the first rows alone", () => {
  expect([isSmall(FEW), isSmall(MANY)]).toEqual([true, false]);
  expect(choicesOf(FEW, CHARTS, { form: FORM, title: "Mine" })[0]?.isEdited).toBe(true);
  const drawn = choicesOf(MANY, CHARTS, { form: FORM, title: "Mine" });
  expect(drawn.map(({ form, isEdited }) => [form, isEdited])).toEqual([
    [null, undefined],
    [null, undefined],
  ]);
});
