// What a call of the model saw, as parts of its budget: which tier each is of, and how much it took.

import type { CallView, How, SeenEntry } from "../api/types";

/** `out`: left out, it took nothing. Notes about the source stand with what was recalled, behind the messages. */
export type Tier = "system" | "summary" | "condensed" | "whole" | "recalled" | "out";

/** Those that take tokens. */
export type ShownTier = Exclude<Tier, "out">;

const TIERS: readonly ShownTier[] = ["system", "summary", "condensed", "whole", "recalled"];

/** Entries that stand together and went in alike. */
export interface Part {
  readonly tier: Tier;
  readonly how: How | "system";
  readonly why: SeenEntry["why"];
  /** Places in the conversation, from 1; both 0 for the instructions. */
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly tokens: number;
  readonly entries: readonly SeenEntry[];
}

/** The parts of a view, in the order in which the model read them. */
export function partsOf(call: CallView): Part[] {
  const parts: Part[] = [systemPart(call)];
  for (const entry of call.entries) {
    const last = parts[parts.length - 1];
    if (last && isAlike(last, entry)) parts[parts.length - 1] = joined(last, entry);
    else parts.push(partOf(entry));
  }
  return parts;
}

/** The tokens of each tier, without those that have none. */
export function tokensByTier(parts: readonly Part[]): { tier: ShownTier; tokens: number }[] {
  const sum = (tier: ShownTier) => parts.reduce((all, part) => all + (part.tier === tier ? part.tokens : 0), 0);
  return TIERS.map((tier) => ({ tier, tokens: sum(tier) })).filter(({ tokens }) => tokens > 0);
}

/** What the call might have taken: the budget of its messages, and its instructions. Null: it is not known. */
export function roomOf(call: CallView): number | null {
  return call.budget === null ? null : call.budget + systemTokens(call);
}

/** Instructions and tools are what was sent and is no message. */
const systemTokens = (call: CallView) => Math.max(0, (call.usage["estimated_tokens"] ?? call.tokens) - call.tokens);

function systemPart(call: CallView): Part {
  return {
    tier: "system",
    how: "system",
    why: null,
    first: 0,
    last: 0,
    count: 1,
    tokens: systemTokens(call),
    entries: [],
  };
}

function tierOf({ how, tier }: SeenEntry): Tier {
  if (how === "left out") return "out";
  if (how === "summary") return "summary";
  if (how === "recalled" || how === "facts" || how === "terms") return "recalled";
  return tier === 2 ? "condensed" : "whole";
}

function partOf(entry: SeenEntry): Part {
  const { how, why, tokens, count, seq } = entry;
  return { tier: tierOf(entry), how, why, first: entry.first ?? seq, last: seq, count, tokens, entries: [entry] };
}

function isAlike(part: Part, entry: SeenEntry): boolean {
  const isMessage = part.tier === "condensed" || part.tier === "whole" || part.tier === "out";
  return (
    isMessage && part.tier === tierOf(entry) && part.why === entry.why && part.how !== "cut" && entry.how !== "cut"
  );
}

function joined(part: Part, entry: SeenEntry): Part {
  return {
    ...part,
    last: entry.seq,
    count: part.count + entry.count,
    tokens: part.tokens + entry.tokens,
    entries: [...part.entries, entry],
  };
}
