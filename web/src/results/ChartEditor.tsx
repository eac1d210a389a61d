import { type ReactNode, useId, useMemo } from "react";
import { headingOf } from "../formats/heading";
import { type MessageId, useT } from "../i18n";
import { Button } from "../ui";
import styles from "./ChartEditor.module.css";
import { type ChartChoice, type ChartEdit, isSmall, renamed } from "./choices";
import { kindsOf } from "./columns";
import { keepEdit } from "./edited";
import { type Form, MARKS, SORTS, STACKS } from "./forms";
import type { QueryResult } from "./result";
import { addsUp, formOf } from "./spec";
import { useWords } from "./words";

interface ChartEditorProps {
  threadId: string;
  result: QueryResult;
  /** The chart that is shown: an edit begins from it. */
  chosen: ChartChoice;
  edit: ChartEdit | null;
  /** The chart was changed, or is as it was again. */
  onEdit: () => void;
  onDone: () => void;
}

const MOST_SERIES = 12;

/** What can be changed of a chart: it is drawn again at once, and the browser keeps it. */
export function ChartEditor({ threadId, result, chosen, edit, onEdit, onDone }: ChartEditorProps) {
  const t = useT();
  const words = useWords();
  const { columns, rows } = result;
  const kinds = useMemo(() => kindsOf(columns, rows), [columns, rows]);
  const form = useMemo(
    () => chosen.form ?? (chosen.given && isSmall(result) ? formOf(chosen.given, columns) : null),
    [chosen, result, columns],
  );
  const sums = useMemo(() => form !== null && addsUp(form, columns, rows), [form, columns, rows]);
  const keep = (next: Partial<Form>) => {
    if (form) keepEdit(threadId, result, { form: { ...form, ...next }, title: chosen.title });
    onEdit();
  };
  const rename = (title: string) => {
    keepEdit(threadId, result, renamed(chosen, title));
    // An edited form is the first chart; one of the model stays where it is.
    if (chosen.form) onEdit();
  };
  const heading = (place: number) => headingOf(columns[place] ?? "", words);
  const numbers = columns.flatMap((_, place) => (kinds[place] === "number" ? [place] : []));
  const places = columns.map((_, place) => place);
  return (
    <div className={styles["editor"]} role="group" aria-label={t("chart.title")}>
      {form && (
        <>
          <Choice
            label="chart.mark"
            value={form.mark}
            options={MARKS.map((mark) => [mark, t(`results.mark.${mark}`)])}
            onChoose={(mark) => keep({ mark, ...(mark === "arc" ? { color: null, beside: [] } : {}) })}
          />
          <Choice
            label={form.mark === "arc" ? "chart.slices" : "chart.x"}
            value={String(form.x)}
            options={places.filter((place) => place !== form.y).map((place) => [String(place), heading(place)])}
            onChoose={(place) => keep({ x: Number(place), ...(form.color === Number(place) ? { color: null } : {}) })}
          />
          <Values form={form} numbers={numbers.filter((place) => place !== form.x)} heading={heading} onChoose={keep} />
          {form.mark !== "arc" && form.beside.length === 0 && (
            <Series form={form} result={result} heading={heading} onChoose={keep} />
          )}
          {(form.mark === "bar" || form.mark === "area") && (form.color !== null || form.beside.length > 0) && (
            <Choice
              label="chart.stack"
              value={form.stack ?? (form.beside.length && form.mark === "bar" ? "grouped" : "stacked")}
              options={STACKS.filter((stack) => form.mark === "bar" || stack !== "grouped").map((stack) => [
                stack,
                t(`chart.stack.${stack}`),
              ])}
              onChoose={(stack) => keep({ stack })}
            />
          )}
          {kinds[form.x] !== "time" && form.mark !== "point" && form.mark !== "arc" && (
            <Choice
              label="chart.sort"
              value={form.sort ?? "rows"}
              options={SORTS.map((sort) => [sort, t(`chart.sort.${sort}`)])}
              onChoose={(sort) => keep({ sort })}
            />
          )}
        </>
      )}
      <Field label="chart.heading" wide>
        {(id) => (
          <input
            id={id}
            className={styles["input"]}
            maxLength={200}
            value={chosen.title}
            onChange={(event) => rename(event.target.value)}
          />
        )}
      </Field>
      <div className={styles["foot"]}>
        {sums && <p className={styles["note"]}>{t("chart.sums")}</p>}
        {edit && (
          <Button kind="quiet" onClick={() => (keepEdit(threadId, result, null), onEdit())}>
            {t("chart.reset")}
          </Button>
        )}
        <Button onClick={onDone}>{t("chart.done")}</Button>
      </div>
    </div>
  );
}

function Field({
  label,
  wide = false,
  children,
}: {
  label: MessageId;
  wide?: boolean;
  children: (id: string) => ReactNode;
}) {
  const t = useT();
  const id = useId();
  return (
    <div className={styles[wide ? "wide" : "field"]}>
      <label className={styles["label"]} htmlFor={id}>
        {t(label)}
      </label>
      {children(id)}
    </div>
  );
}

function Choice<Value extends string>({
  label,
  value,
  options,
  onChoose,
}: {
  label: MessageId;
  value: Value;
  options: readonly (readonly [Value, string])[];
  onChoose: (value: Value) => void;
}) {
  return (
    <Field label={label}>
      {(id) => (
        <select
          id={id}
          className={styles["input"]}
          value={value}
          onChange={(event) => onChoose(event.target.value as Value)}
        >
          {options.map(([each, name]) => (
            <option key={each} value={each}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface PartProps {
  form: Form;
  heading: (place: number) => string;
  onChoose: (next: Partial<Form>) => void;
}

/** The measures: one for slices and points, else those that are ticked. */
function Values({ form, numbers, heading, onChoose }: PartProps & { numbers: readonly number[] }) {
  const t = useT();
  const chosen = [form.y, ...form.beside];
  if (form.mark === "arc" || form.mark === "point" || numbers.length < 2) {
    return (
      <Choice
        label="chart.y"
        value={String(form.y)}
        options={numbers.map((place) => [String(place), heading(place)])}
        onChoose={(place) => onChoose({ y: Number(place), beside: [] })}
      />
    );
  }
  const toggle = (place: number) => {
    const [y, ...beside] = chosen.includes(place) ? chosen.filter((each) => each !== place) : [...chosen, place];
    if (y !== undefined) onChoose({ y, beside, ...(beside.length ? { color: null } : {}) });
  };
  return (
    <fieldset className={styles["values"]}>
      <legend className={styles["label"]}>{t("chart.y")}</legend>
      {numbers.map((place) => (
        <label key={place} className={styles["value"]}>
          <input
            type="checkbox"
            checked={chosen.includes(place)}
            disabled={chosen.length === 1 && chosen[0] === place}
            onChange={() => toggle(place)}
          />{" "}
          {heading(place)}
        </label>
      ))}
    </fieldset>
  );
}

/** What tells rows of one place apart, by colours. */
function Series({ form, result: { columns, rows }, heading, onChoose }: PartProps & { result: QueryResult }) {
  const t = useT();
  const different = (place: number) => new Set(rows.map((row) => String(row[place]))).size;
  const places = columns
    .map((_, place) => place)
    .filter(
      (place) =>
        place === form.color ||
        (place !== form.x && place !== form.y && different(place) > 1 && different(place) <= MOST_SERIES),
    );
  if (places.length === 0) return null;
  const options = [
    ["", t("chart.seriesNone")] as const,
    ...places.map((place) => [String(place), heading(place)] as const),
  ];
  return (
    <Choice
      label="chart.series"
      value={form.color === null ? "" : String(form.color)}
      options={options}
      onChoose={(place) => onChoose({ color: place === "" ? null : Number(place) })}
    />
  );
}
