import { expect, test } from "vitest";
import { type Decimal, decimal, isRounded, mayBe, same } from "./decimal";

const NUMBERS = [
  "0",
  "0.5",
  "-0.5",
  "0.05",
  "0.949",
  "0.95",
  "94.9",
  "95",
  "1",
  "1.5",
  "2",
  "-2",
  "12.345",
  "12.35",
  "999.5",
  "1000",
  "37800000",
  "37849999.99",
  "9007199254740993",
  "9007199254740992",
  "1e21",
  "0.000001",
];
const read = (text: string): Decimal => decimal(text) as Decimal;

test("no pair that is the same or rounded is put aside before it is compared, and most others are", () => {
  const pairs = NUMBERS.flatMap((a) => NUMBERS.map((b) => [read(a), read(b)] as const));
  for (const [shown, exact] of pairs) {
    if (same(shown, exact) || isRounded(exact, shown)) expect(mayBe(shown, exact)).toBe(true);
  }
  expect(pairs.filter(([shown, exact]) => mayBe(shown, exact)).length).toBeLessThan(pairs.length / 4);
});
