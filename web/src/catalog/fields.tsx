import { type ReactNode, useId, useState } from "react";
import { NumberTooLarge, parseToSend } from "../api/exact";
import type { Json, JsonObject } from "../api/types";
import { useT } from "../i18n";
import { classes } from "../ui";
import styles from "./Catalog.module.css";
import { at, textAt, useForm, wrongAt } from "./draft";

export interface FieldProps {
  path: string;
  label: string;
  hint?: string;
}

interface FrameProps extends FieldProps {
  /** Only what is wrong with the field itself, not with its parts. */
  alone?: boolean;
  className?: string | undefined;
  children: (given: { id: string; "aria-invalid": boolean; "aria-describedby": string | undefined }) => ReactNode;
}

/** A field with its label, and with what is wrong with it. */
export function Field({ path, label, hint, alone = false, className, children }: FrameProps) {
  const id = useId();
  const wrong = wrongAt(useForm().wrong, path, { alone });
  const notes = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  return (
    <div className={classes(styles["field"], className)}>
      <label htmlFor={id} className={styles["label"]}>
        {label}
      </label>
      {children({ id, "aria-invalid": wrong !== undefined, "aria-describedby": notes || undefined })}
      {hint && (
        <p id={`${id}-hint`} className={styles["hint"]}>
          {hint}
        </p>
      )}
      {wrong && (
        <p id={`${id}-wrong`} className={styles["wrong"]} dir="auto">
          {wrong}
        </p>
      )}
    </div>
  );
}

interface TextProps extends FieldProps {
  rows?: number;
  code?: boolean;
  /** What is offered. */
  list?: readonly string[];
}

export function Text({ rows, code, list, ...field }: TextProps) {
  const { definition, set } = useForm();
  const options = useId();
  const look = classes(styles["input"], code && styles["code"]);
  const value = textAt(definition, field.path);
  const change = (text: string) => set(field.path, text === "" ? undefined : text);
  return (
    <Field {...field}>
      {(given) =>
        rows ? (
          <textarea
            {...given}
            className={look}
            rows={rows}
            dir={code ? "ltr" : "auto"}
            spellCheck={!code}
            value={value}
            onChange={(event) => change(event.target.value)}
          />
        ) : (
          <>
            <input
              {...given}
              className={look}
              dir="auto"
              spellCheck={false}
              autoComplete="off"
              value={value}
              list={list && options}
              onChange={(event) => change(event.target.value)}
            />
            {list && (
              <datalist id={options}>
                {list.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Field>
  );
}

export function Amount({ step = 1, ...field }: FieldProps & { step?: number }) {
  const { definition, set } = useForm();
  return (
    <Field {...field} className={styles["short"]}>
      {(given) => (
        <input
          {...given}
          type="number"
          className={styles["input"]}
          min={0}
          step={step}
          value={textAt(definition, field.path)}
          onChange={(event) => set(field.path, event.target.value === "" ? undefined : Number(event.target.value))}
        />
      )}
    </Field>
  );
}

interface OneOfProps extends FieldProps {
  options: readonly { value: string; label: string }[];
  none?: string;
  /** What else changes with it. */
  onChange?: (value: string) => void;
}

export function OneOf({ options, none, onChange, ...field }: OneOfProps) {
  const { definition, set } = useForm();
  const value = textAt(definition, field.path);
  const known = value === "" || options.some((each) => each.value === value);
  return (
    <Field {...field}>
      {(given) => (
        <select
          {...given}
          className={styles["input"]}
          value={value}
          onChange={(event) => (set(field.path, event.target.value || undefined), onChange?.(event.target.value))}
        >
          {none !== undefined && <option value="">{none}</option>}
          {!known && <option value={value}>{value}</option>}
          {options.map((each) => (
            <option key={each.value} value={each.value}>
              {each.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Flag({ path, label, standard = false }: FieldProps & { standard?: boolean }) {
  const { definition, set } = useForm();
  const value = at(definition, path);
  return (
    <label className={styles["flag"]}>
      <input
        type="checkbox"
        checked={typeof value === "boolean" ? value : standard}
        onChange={(event) => set(path, event.target.checked === standard ? undefined : event.target.checked)}
      />
      {label}
    </label>
  );
}

interface PicksProps extends FieldProps {
  options: readonly { name: string; note?: string | undefined }[];
  none: string;
}

const nameOf = (item: Json): string => {
  if (typeof item === "string") return item;
  const named = item as JsonObject | null;
  return String(named?.["tool"] ?? named?.["tool_id"] ?? "");
};

/** Some of many, by name. One that is an object stays what it is while it is chosen. */
export function Picks({ options, none, ...field }: PicksProps) {
  const { definition, set, wrong } = useForm();
  const id = useId();
  const value = at(definition, field.path);
  const chosen: Json[] = Array.isArray(value) ? value : [];
  const names = new Set(chosen.map(nameOf));
  const all = [
    ...options,
    ...[...names]
      .filter((name) => !options.some((each) => each.name === name))
      .map((name) => ({ name, note: undefined })),
  ];
  const toggle = (name: string) => {
    const next = names.has(name) ? chosen.filter((each) => nameOf(each) !== name) : [...chosen, name];
    set(field.path, next.length ? next : undefined);
  };
  const problem = wrongAt(wrong, field.path);
  return (
    <fieldset className={styles["picks"]} aria-describedby={problem && id}>
      <legend className={styles["label"]}>{field.label}</legend>
      {all.length === 0 && <p className={styles["hint"]}>{none}</p>}
      {all.map(({ name, note }) => (
        <label key={name} className={styles["pick"]}>
          <input type="checkbox" checked={names.has(name)} onChange={() => toggle(name)} />
          <span dir="auto">
            {name}
            {note && <small>{note}</small>}
          </span>
        </label>
      ))}
      {field.hint && <p className={styles["hint"]}>{field.hint}</p>}
      {problem && (
        <p id={id} className={styles["wrong"]} tabIndex={-1} data-invalid>
          {problem}
        </p>
      )}
    </fieldset>
  );
}

interface ObjectProps extends FieldProps {
  rows: number;
  value: JsonObject;
  onChange: (value: JsonObject) => void;
}

/** An object as JSON. What is no JSON yet cannot be saved. */
export function ObjectText({ rows, value, onChange, ...field }: ObjectProps) {
  const t = useT();
  const { unreadable } = useForm();
  const [text, setText] = useState(() => (Object.keys(value).length ? JSON.stringify(value, null, 2) : ""));
  const change = (next: string) => {
    setText(next);
    try {
      const parsed: unknown = next.trim() === "" ? {} : parseToSend(next);
      if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new SyntaxError();
      unreadable(field.path, undefined);
      onChange(parsed as JsonObject);
    } catch (error) {
      unreadable(field.path, t(error instanceof NumberTooLarge ? "chat.noNumber" : "catalog.noJson"));
    }
  };
  return (
    <Field {...field}>
      {(given) => (
        <textarea
          {...given}
          className={classes(styles["input"], styles["code"])}
          dir="ltr"
          rows={rows}
          spellCheck={false}
          value={text}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Field>
  );
}
