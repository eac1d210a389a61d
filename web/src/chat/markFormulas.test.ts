import { expect, it } from "vitest";
import { DISPLAY, INLINE, markFormulas } from "./markFormulas";

const shown = (text: string) => markFormulas(text).replaceAll(INLINE, "i:").replaceAll(DISPLAY, "d:");

it.each([
  ["The mean is $\\bar{x}$, and $n$ counts.", "The mean is `i:\\bar{x}`, and `i:n` counts."],
  ["均值为 $\\bar{x}$。", "均值为 `i:\\bar{x}`。"],
  ["$$\na_1\n= b_1\n$$", "`d:a_1 = b_1`"],
  ["> \\[\n> a - b\n> \\]", "> `d:a - b`"],
  ["So \\(a*b*c\\) it is", "So `i:a*b*c` it is"],
  ["$2^n$ and $3x = 4$", "`i:2^n` and `i:3x = 4`"],
])("of %j the formulas are %j", (text, marked) => {
  expect(shown(text)).toBe(marked);
});

it.each([
  "It costs $5 and $10.",
  "From $5-$10, or US$3 and A$4.",
  "About $1,200 (or 3$) a day, 4$.",
  "$AAPL and $MSFT rose",
  "Revenue ($) rose and cost ($) fell",
  "| City | Revenue ($) | Cost ($) |",
  "收入（$）和成本（$）",
  "Paid \\$5_a\\$.",
  "`$a_1$` and ``$b`$``",
  "```sql\nSELECT $1, '$x$'\n```",
  "```\n$a$",
  "open $$ a",
  "$$\n\n$$",
])("%j has no formula", (text) => {
  expect(markFormulas(text)).toBe(text);
});

it("reads a long text without a formula in time that grows with it", () => {
  const long = "$$ ` $a \\( ".repeat(20_000);
  expect(markFormulas(long).length).toBeGreaterThan(0);
});
