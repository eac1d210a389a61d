import { useQuery } from "@tanstack/react-query";
import { spending } from "../api/keys";
import type { BudgetBody, BudgetView } from "../api/types";
import { t } from "../i18n";
import { number } from "../i18n/format";

export const UNITS: readonly BudgetView["unit"][] = ["tokens", "money"];
export const PERIODS: readonly BudgetView["period"][] = ["day", "week", "month"];

const today = () => new Date().toISOString().slice(0, 10);

/** The server's currency; empty until it is known. */
export const useCurrency = () =>
  useQuery({
    queryKey: ["spending", "currency"],
    queryFn: ({ signal }) => spending("me", { by: "day", since: today() }, signal),
    staleTime: Infinity,
  }).data?.currency ?? "";

/** An amount in the server's currency. Small ones have more digits. */
export function money(amount: number, currency: string): string {
  if (!currency) return number(amount);
  const digits = amount !== 0 && Math.abs(amount) < 0.1 ? { maximumSignificantDigits: 2 } : {};
  return number(amount, { style: "currency", currency, ...digits });
}

/** `100,000 tokens each month` */
export function budgetText({ amount, unit, period }: BudgetView, currency: string): string {
  const what = unit === "money" ? money(amount, currency) : t("account.tokens", { n: number(amount) });
  return t(`account.each.${period}`, { what });
}

/** What the fields of a budget hold; null: no budget. */
export function budgetOf(given: FormData): BudgetBody | null {
  const amount = String(given.get("amount") ?? "").trim();
  if (amount === "") return null;
  return {
    amount: Number(amount),
    unit: UNITS.find((each) => each === given.get("unit")) ?? "tokens",
    period: PERIODS.find((each) => each === given.get("period")) ?? "month",
  };
}
