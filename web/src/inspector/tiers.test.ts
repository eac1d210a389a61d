import { expect, test } from "vitest";

import type { CallView, SeenEntry } from "../api/types";
import { partsOf, roomOf, tokensByTier } from "./tiers";

function seen(
  seq: number,
  how: SeenEntry["how"],
  tier: number | null,
  tokens: number,
  rest: Partial<SeenEntry> = {},
): SeenEntry {
  return {
    id: `m${seq}`,
    seq,
    first: null,
    count: 1,
    role: "user",
    run_id: null,
    call_id: null,
    how,
    why: null,
    tier,
    tokens,
    text: "…",
    ...rest,
  };
}

function call(entries: SeenEntry[], rest: Partial<CallView> = {}): CallView {
  const tokens = entries.reduce((sum, each) => sum + each.tokens, 0);
  return {
    step: 9,
    run_id: "r",
    number: 3,
    of: 7,
    model: "m",
    started_at: "",
    status: "done",
    tokens,
    budget: 1000,
    usage: { estimated_tokens: tokens + 300 },
    thread_id: "t",
    why_planned: "",
    system: "You are",
    tools: [],
    segments: [],
    entries,
    difference: null,
    ...rest,
  };
}

const long = call([
  seen(84, "summary", 1, 256, { first: 1, count: 84 }),
  seen(85, "condensed", 2, 50),
  seen(86, "whole", 2, 20),
  seen(87, "left out", null, 0, { why: "unpaired" }),
  seen(88, "whole", 3, 30),
  seen(89, "cut", 3, 40),
  seen(90, "whole", 3, 10),
  seen(90, "recalled", null, 19, { id: null, count: 0 }),
  seen(90, "facts", null, 5, { id: null, count: 0 }),
]);

test("entries that went in alike are one part, in the order in which they were read", () => {
  expect(
    partsOf(long).map(({ tier, how, first, last, count, tokens }) => [tier, how, first, last, count, tokens]),
  ).toEqual([
    ["system", "system", 0, 0, 1, 300],
    ["summary", "summary", 1, 84, 84, 256],
    ["condensed", "condensed", 85, 86, 2, 70],
    ["out", "left out", 87, 87, 1, 0],
    ["whole", "whole", 88, 88, 1, 30],
    ["whole", "cut", 89, 89, 1, 40],
    ["whole", "whole", 90, 90, 1, 10],
    ["recalled", "recalled", 90, 90, 0, 19],
    ["recalled", "facts", 90, 90, 0, 5],
  ]);
});

test("the tiers take together what was sent", () => {
  const tiers = tokensByTier(partsOf(long));
  expect(tiers).toEqual([
    { tier: "system", tokens: 300 },
    { tier: "summary", tokens: 256 },
    { tier: "condensed", tokens: 70 },
    { tier: "whole", tokens: 80 },
    { tier: "recalled", tokens: 24 },
  ]);
  expect(tiers.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(long.usage["estimated_tokens"]);
});

test("the room is that of the messages and the instructions", () => {
  expect(roomOf(long)).toBe(1300);
  expect(roomOf(call([], { budget: null }))).toBeNull();
  expect(roomOf(call([], { usage: {} }))).toBe(1000);
});
