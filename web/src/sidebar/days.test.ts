import { expect, test } from "vitest";
import { groupOf, grouped } from "./days";

const now = new Date(2026, 2, 30, 0, 30);
const at = (...parts: [number, number, number, number?]) => new Date(...parts).toISOString();

test.each([
  ["today", at(2026, 2, 30, 0)],
  ["today", at(2026, 2, 31)],
  ["yesterday", at(2026, 2, 29, 23)],
  ["yesterday", at(2026, 2, 29, 0)],
  ["week", at(2026, 2, 28)],
  ["week", at(2026, 2, 24)],
  ["month", at(2026, 2, 23)],
  ["month", at(2026, 2, 1)],
  ["2026-2", at(2026, 1, 28)],
  ["2025-12", at(2025, 11, 31)],
])("%s", (group, iso) => expect(groupOf(iso, now)).toBe(group));

test("groups keep the order", () => {
  const items = [at(2026, 2, 30), at(2026, 2, 29), at(2026, 2, 29), at(2025, 0, 1)].map((last_active_at) => ({
    last_active_at,
  }));
  expect(grouped(items, now).map(({ group, items }) => [group, items.length])).toEqual([
    ["today", 1],
    ["yesterday", 2],
    ["2025-1", 1],
  ]);
});
