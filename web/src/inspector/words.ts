// What the inspector says about parts of a view.

import type { CallView } from "../api/types";
import { type useT, isMessage } from "../i18n";
import type { Part } from "./tiers";

type T = ReturnType<typeof useT>;

export function partTitle({ how, tier, first, last, count }: Part, t: T): string {
  if (how === "system") return t("inspector.part.system");
  if (how === "recalled" || how === "facts" || how === "terms") return t(`inspector.part.${how}`);
  if (how === "summary") return t("inspector.part.summary", { from: first, to: last });
  const place = count === 1 ? t("inspector.message", { n: last }) : t("inspector.messages", { from: first, to: last });
  return t(
    `inspector.part.${how === "cut" ? "cut" : tier === "out" ? "out" : tier === "condensed" ? "condensed" : "whole"}`,
    { place },
  );
}

/** Why a part went in as it did, or was left out. */
export function reasonOf({ how, tier, why }: Part, call: CallView, t: T): string {
  const id = `inspector.why.${why ?? ""}`;
  if (why && isMessage(id)) return t(id);
  if (how === "system") return call.why_planned ? plannedOf(call.why_planned, t) : t("inspector.extends");
  if (how === "summary") return t("inspector.why.summary");
  return tier === "condensed" ? t("inspector.why.condensed") : "";
}

// The server says it in English.
const PLANNED = {
  "the first call": "inspector.planned.first",
  "the hot window has moved on, or another branch was taken": "inspector.planned.window",
  "another source, or another schema of it": "inspector.planned.source",
  "the high-water mark was reached": "inspector.planned.mark",
} as const;

export function plannedOf(why: string, t: T): string {
  const known = PLANNED[why as keyof typeof PLANNED];
  return known ? t(known) : why;
}
