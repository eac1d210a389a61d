// The labels along an axis, as Vega writes them: all in one form.

import { View, expressionFunction, parse } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { type TopLevelSpec, compile } from "vega-lite";
import { expect, test } from "vitest";
import type { ColumnFormat } from "./columnFormat";
import { formattedSpec, functions } from "./chart";

for (const [name, write] of Object.entries(functions)) expressionFunction(name, write);

const words = (locale: string) => ({
  locale,
  count: "count",
  countOf: (field: string) => field,
  aggregate: (_: string, field: string) => field,
});

/** The labels of the vertical axis of a line through these values. */
async function ticks(
  values: readonly number[],
  locale: string,
  format: ColumnFormat = { kind: "number" },
  more: object = {},
): Promise<string[]> {
  const rows = values.map((n, at) => ({ at: `${at}`, n }));
  const spec = {
    data: { values: rows },
    mark: "line",
    height: 200,
    encoding: { x: { field: "at", type: "nominal" }, y: { field: "n", type: "quantitative", ...more } },
  };
  const made = compile(formattedSpec(spec, { n: format }, words(locale)) as unknown as TopLevelSpec).spec;
  // As the page draws them: interpreted.
  const view = new View(parse(made, {}, { ast: true }), { renderer: "none", expr: expressionInterpreter } as never);
  const drawn = await view.toSVG();
  view.finalize();
  const axis = drawn.slice(drawn.lastIndexOf("role-axis-label"), drawn.lastIndexOf("role-axis-title"));
  return [...axis.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text ?? "");
}

test.each<[number[], string, string[], ColumnFormat?]>([
  [[1200, 11_800], "en", ["0", "2K", "4K", "6K", "8K", "10K", "12K"]],
  [[1200, 11_800], "zh-CN", ["0", "0.2万", "0.4万", "0.6万", "0.8万", "1万", "1.2万"]],
  [[1200, 7800], "en", ["0", "2,000", "4,000", "6,000", "8,000"]],
  [[300_000, 1_100_000], "en", ["€0", "€0.2M", "€0.4M", "€0.6M", "€0.8M", "€1M"], { kind: "currency", unit: "€" }],
  [
    [300_000, 1_100_000],
    "zh-CN",
    ["¥0", "¥20万", "¥40万", "¥60万", "¥80万", "¥100万"],
    { kind: "currency", unit: "¥" },
  ],
  [[-11_000, 9000], "en", ["-10K", "-5K", "0", "5K", "10K"]],
  [[0.1, 0.5], "en", ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]],
])("%j in %s", async (values, locale, labels, format) => {
  expect(await ticks(values, locale, format)).toEqual(labels);
});

test("ticks that are close to each other differ", async () => {
  const labels = await ticks([1_200_100, 1_205_900], "en", { kind: "number" }, { scale: { zero: false } });
  expect(labels.slice(0, 3)).toEqual(["1.2M", "1.201M", "1.202M"]);
  expect(new Set(labels).size).toBe(labels.length);
});

test("ticks that are no steps stand each by itself", async () => {
  const labels = await ticks([1, 1_000_000], "en", { kind: "number" }, { scale: { type: "log" } });
  expect(labels).toContain("1");
  expect(labels).toContain("10K");
  expect(labels).toContain("1M");
});
