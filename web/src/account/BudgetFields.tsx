import type { BudgetView } from "../api/types";
import { useT } from "../i18n";
import { Field } from "../ui/Field";
import styles from "./Forms.module.css";
import { PERIODS, UNITS, useCurrency } from "./budget";

/** The fields of a budget, which `budgetOf` reads. */
export function BudgetFields({ budget = null, label }: { budget?: BudgetView | null; label: string }) {
  const t = useT();
  const currency = useCurrency();
  return (
    <div className={styles["three"]}>
      <Field label={label} hint={t("account.budgetHint")}>
        {(given) => (
          <input
            {...given}
            name="amount"
            type="number"
            min={0}
            step="any"
            inputMode="decimal"
            autoComplete="off"
            defaultValue={budget?.amount ?? ""}
          />
        )}
      </Field>
      <Field label={t("account.unit")}>
        {(given) => (
          <select {...given} name="unit" defaultValue={budget?.unit ?? "tokens"}>
            {UNITS.map((unit) => (
              <option key={unit} value={unit}>
                {unit === "money" ? currency || t("account.unit.money") : t("account.unit.tokens")}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label={t("account.period")}>
        {(given) => (
          <select {...given} name="period" defaultValue={budget?.period ?? "month"}>
            {PERIODS.map((period) => (
              <option key={period} value={period}>
                {t(`account.period.${period}`)}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}
