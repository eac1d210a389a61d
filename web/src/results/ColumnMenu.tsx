import { type FormEvent, useState } from "react";
import { choose, useChosen } from "../formats/chosen";
import { type ColumnFormat, LONGEST_UNIT, isNumeric } from "../formats/columnFormat";
import { useT } from "../i18n";
import { Button, Dialog, Icon, Menu, MenuChoices, MenuItem, MenuSeparator } from "../ui";
import styles from "./ResultTable.module.css";
import type { Cell } from "./result";

interface ColumnMenuProps {
  threadId: string;
  /** The column's name, and what stands above it. */
  column: string;
  heading: string;
  /** How its values are written now. */
  format: ColumnFormat;
  /** One of its values. */
  cell: Cell;
}

const CURRENCIES = ["$", "€", "£", "¥"];
const PLACES = [0, 1, 2, 3];
const AUTO = "auto";

/** How the values of a column are written: chosen here, it holds for the column of this name in the whole conversation. */
export function ColumnMenu({ threadId, column, heading, format, cell }: ColumnMenuProps) {
  const t = useT();
  const chosen = useChosen(threadId)[column];
  const [asksUnit, setAsksUnit] = useState(false);
  const isNumber = typeof cell === "number" || isNumeric(format);
  const set = (next: ColumnFormat | null) => choose(threadId, column, next);
  const places = chosen?.places === undefined ? {} : { places: chosen.places };
  const kinds: ColumnFormat[] = isNumber
    ? [
        { kind: "number" },
        { kind: "plain" },
        ...CURRENCIES.map((unit) => ({ kind: "currency", unit }) as const),
        { kind: "percent" },
        { kind: "share" },
      ]
    : [{ kind: "date" }, { kind: "text" }];
  const own = chosen && !kinds.some((each) => keyOf(each) === keyOf(chosen)) ? [chosen] : [];
  const options = [...kinds, ...own].map((each) => ({
    value: keyOf(each),
    label:
      each.kind === "currency" || each.kind === "unit"
        ? t(`results.format.${each.kind}`, { unit: each.unit ?? "" })
        : t(`results.format.${each.kind}`),
  }));
  return (
    <>
      <Menu
        align="start"
        trigger={
          <button type="button" className={styles["format"]} aria-label={t("results.formatOf", { column: heading })}>
            <Icon name="open" size={14} />
          </button>
        }
      >
        <MenuChoices
          value={chosen ? keyOf(chosen) : AUTO}
          options={[{ value: AUTO, label: t("results.format.auto") }, ...options]}
          onChoose={(key) =>
            set(key === AUTO ? null : { ...[...kinds, ...own].find((each) => keyOf(each) === key)!, ...places })
          }
        />
        {isNumber && (
          <>
            <MenuItem onClick={() => setAsksUnit(true)}>{t("results.format.unitOther")}</MenuItem>
            <MenuSeparator />
            <MenuChoices
              value={chosen?.places === undefined ? AUTO : String(chosen.places)}
              options={[
                { value: AUTO, label: t("results.places.auto") },
                ...PLACES.map((each) => ({ value: String(each), label: t("results.places", { n: each }) })),
              ]}
              onChoose={(key) => {
                const { places: _, ...rest } = chosen ?? format;
                set(key === AUTO ? (chosen ? rest : null) : { ...rest, places: Number(key) });
              }}
            />
          </>
        )}
      </Menu>
      <UnitDialog
        open={asksUnit}
        heading={heading}
        initial={format.unit ?? ""}
        onClose={() => setAsksUnit(false)}
        onChoose={(unit) => set({ kind: "unit", unit, ...places })}
      />
    </>
  );
}

const keyOf = ({ kind, unit = "" }: ColumnFormat) => `${kind} ${unit}`;

interface UnitDialogProps {
  open: boolean;
  heading: string;
  initial: string;
  onClose: () => void;
  onChoose: (unit: string) => void;
}

function UnitDialog({ open, heading, initial, onClose, onChoose }: UnitDialogProps) {
  const t = useT();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onChoose(String(new FormData(event.currentTarget).get("unit")).trim());
    onClose();
  };
  return (
    <Dialog open={open} onClose={onClose} title={t("results.unitOf", { column: heading })}>
      <form className={styles["unit"]} onSubmit={submit}>
        <input
          className={styles["input"]}
          name="unit"
          required
          pattern=".*\S.*"
          maxLength={LONGEST_UNIT}
          defaultValue={initial}
          aria-label={t("results.unit")}
          placeholder={t("results.unitHint")}
        />
        <Button kind="primary" type="submit">
          {t("results.unitUse")}
        </Button>
      </form>
    </Dialog>
  );
}
