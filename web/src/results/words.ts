import { useMemo } from "react";
import { type MessageId, isMessage, locale, useT } from "../i18n";
import type { Words } from "./draw";

/** The words of a chart in the page's language; the same object while that stays. */
export function useWords(): Words {
  const t = useT();
  const language = locale();
  return useMemo(
    () => ({
      loads: t("results.chartLoads"),
      count: t("results.count"),
      countOf: (field: string) =>
        t("results.countOf", { field: /\w$/.test(field) && language.startsWith("zh") ? `${field} ` : field }),
      aggregate: (aggregate: string, field: string) =>
        t("results.aggregate", { aggregate: named(`results.aggregate.${aggregate}`, aggregate, t), field }),
      locale: language,
    }),
    [t, language],
  );
}

export const named = (id: string, other: string, t: (id: MessageId) => string) => (isMessage(id) ? t(id) : other);
