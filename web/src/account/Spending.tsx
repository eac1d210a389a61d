import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type SpendingBy, spending } from "../api/keys";
import type { SpendingReport, SpendingView } from "../api/types";
import { useT } from "../i18n";
import { locale } from "../i18n";
import { number } from "../i18n/format";
import { Note, Part, Told } from "../settings/parts";
import table from "../settings/Usage.module.css";
import { Field } from "../ui/Field";
import styles from "./Forms.module.css";
import { money } from "./budget";

const RANGES = [7, 30, 90, 365] as const;
const DAY_MS = 86_400_000;
/** The day so many days ago, in UTC, as the server counts. */
const dayBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

interface SpendingProps {
  whose: "me" | "admin";
  title: string;
  about: string;
  /** By what it can be shown, the first at first. */
  ways: readonly SpendingBy[];
}

/** What was spent, by one of the ways. */
export function Spending({ whose, title, about, ways }: SpendingProps) {
  const t = useT();
  const [by, setBy] = useState<SpendingBy>(ways[0] ?? "day");
  const [days, setDays] = useState(30);
  const answer = useQuery({
    queryKey: ["spending", whose, by, days],
    queryFn: ({ signal }) => spending(whose, { by, since: dayBefore(days - 1) }, signal),
    placeholderData: keepPreviousData,
  });
  return (
    <Part title={title} about={about}>
      <div className={styles["row"]}>
        <Field label={t("account.by")}>
          {(given) => (
            <select {...given} value={by} onChange={(event) => setBy(event.target.value as SpendingBy)}>
              {ways.map((way) => (
                <option key={way} value={way}>
                  {t(`account.by.${way}`)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={t("account.range")}>
          {(given) => (
            <select {...given} value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {RANGES.map((range) => (
                <option key={range} value={range}>
                  {t("account.lastDays", { n: range })}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <Told answer={answer}>
        {(report) => (report.rows.length ? <Rows report={report} /> : <Note>{t("account.nothingSpent")}</Note>)}
      </Told>
    </Part>
  );
}

function Rows({ report: { by, rows, currency } }: { report: SpendingReport }) {
  const t = useT();
  const hasCost = rows.some((row) => row.cost > 0);
  const unpriced = rows.reduce((sum, row) => sum + row.unpriced, 0);
  return (
    <>
      <section className={table["scroll"]} aria-label={t("account.usage")} tabIndex={0}>
        <table className={table["table"]}>
          <thead>
            <tr>
              <th scope="col">{t(`account.by.${by}`)}</th>
              {(["settings.calls", "settings.input", "settings.output"] as const).map((id) => (
                <th key={id} scope="col" className={table["number"]}>
                  {t(id)}
                </th>
              ))}
              {hasCost && (
                <th scope="col" className={table["number"]}>
                  {t("settings.cost")}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}>
                <th scope="row" className={table["name"]} dir="auto">
                  {nameOf(row, by) ?? t(by === "key" ? "account.noKey" : "account.noName")}
                </th>
                <td className={table["number"]}>{number(row.requests)}</td>
                <td className={table["number"]}>{number(row.tokens_in)}</td>
                <td className={table["number"]}>{number(row.tokens_out)}</td>
                {hasCost && <td className={table["number"]}>{row.cost > 0 ? money(row.cost, currency) : "–"}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {unpriced > 0 && <Note>{t("account.unpriced", { n: number(unpriced) })}</Note>}
    </>
  );
}

function nameOf({ id, name }: SpendingView, by: SpendingBy): string | null {
  if (by !== "day") return name;
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeZone: "UTC" }).format(new Date(id));
}
