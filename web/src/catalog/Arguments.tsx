import { useEffect, useId, useRef, useState } from "react";
import { parseToSend } from "../api/exact";
import type { Json, JsonObject } from "../api/types";
import { useT } from "../i18n";
import { classes } from "../ui";
import styles from "./Catalog.module.css";
import { objectAt, putKey, textAt } from "./draft";

interface ArgumentsProps {
  /** JSON Schema of the arguments. */
  parameters: JsonObject;
  /** Null: what stands there is no JSON. */
  onChange: (args: JsonObject | null) => void;
  /** Others than those of the schema may be given. */
  open: boolean;
}

/** The arguments of a call, as a form of its schema or as JSON. */
export function Arguments({ parameters, onChange, open }: ArgumentsProps) {
  const t = useT();
  const properties = objectAt(parameters, "properties");
  const names = Object.keys(properties);
  const [values, setValues] = useState<JsonObject>({});
  const [json, setJson] = useState<string | null>(open ? "{}" : null);
  const told = useRef(onChange);
  useEffect(() => {
    told.current = onChange;
  });
  useEffect(() => {
    told.current(json === null ? values : parsed(json));
  }, [json, values]);
  const set = (name: string, value: Json | undefined) => setValues((now) => putKey(now, name, value));
  const toForm = () => {
    setValues(parsed(json ?? "{}") ?? values);
    setJson(null);
  };
  return (
    <fieldset className={styles["args"]}>
      <legend className={styles["label"]}>{t("catalog.args")}</legend>
      <div className={styles["tabs"]}>
        <button
          type="button"
          className={styles["tab"]}
          aria-pressed={json === null}
          data-active={json === null || undefined}
          onClick={toForm}
        >
          {t("catalog.form")}
        </button>
        <button
          type="button"
          className={styles["tab"]}
          aria-pressed={json !== null}
          data-active={json !== null || undefined}
          onClick={() => setJson(JSON.stringify(values, null, 2))}
        >
          {t("catalog.json")}
        </button>
      </div>
      {json !== null ? (
        <>
          <textarea
            className={classes(styles["input"], styles["code"])}
            rows={5}
            dir="ltr"
            spellCheck={false}
            aria-label={t("catalog.args")}
            aria-invalid={parsed(json) === null}
            value={json}
            onChange={(event) => setJson(event.target.value)}
          />
          {parsed(json) === null && <p className={styles["wrong"]}>{t("catalog.noJson")}</p>}
        </>
      ) : (
        names.map((name) => (
          <Argument
            key={name}
            name={name}
            schema={schemaOf(properties[name])}
            value={values[name]}
            onChange={(value) => set(name, value)}
          />
        ))
      )}
      {json === null && names.length === 0 && <p className={styles["hint"]}>{t("catalog.noArgs")}</p>}
    </fieldset>
  );
}

function parsed(text: string): JsonObject | null {
  try {
    const value = parseToSend(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

interface ArgumentProps {
  name: string;
  schema: JsonObject;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

/** One argument. What is no number or no JSON yet goes as the text that it is, and the server says what it wants. */
function Argument({ name, schema, value, onChange }: ArgumentProps) {
  const t = useT();
  const id = useId();
  const type = textAt(schema, "type");
  const choices = Array.isArray(schema["enum"]) ? schema["enum"] : type === "boolean" ? [true, false] : null;
  const hint = textAt(schema, "description");
  const standard = schema["default"];
  const given = { id, className: styles["input"], "aria-describedby": hint ? `${id}-hint` : undefined };
  return (
    <div className={styles["field"]}>
      <label htmlFor={id} className={styles["label"]}>
        <code>{name}</code>
      </label>
      {choices ? (
        <select
          {...given}
          value={choices.findIndex((each) => each === value)}
          onChange={(event) => onChange(choices[Number(event.target.value)])}
        >
          <option value={-1}>{standard === undefined ? t("catalog.unset") : String(standard)}</option>
          {choices.map((each, place) => (
            <option key={place} value={place}>
              {String(each)}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...given}
          dir="auto"
          autoComplete="off"
          spellCheck={false}
          inputMode={type === "integer" || type === "number" ? "decimal" : undefined}
          placeholder={standard === undefined ? undefined : JSON.stringify(standard)}
          value={shown(value)}
          onChange={(event) => onChange(read(event.target.value, type))}
        />
      )}
      {hint && (
        <p id={`${id}-hint`} className={styles["hint"]} dir="auto">
          {hint}
        </p>
      )}
    </div>
  );
}

const schemaOf = (value: Json | undefined): JsonObject => objectAt({ value: value ?? {} }, "value");

const shown = (value: Json | undefined) =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

function read(text: string, type: string): Json | undefined {
  if (text === "") return undefined;
  if (type === "string" || type === "") return text;
  const isWhole = /^-?[1-9]\d*$/.test(text.trim());
  if ((type === "integer" || type === "number") && !isWhole)
    return text.trim() !== "" && String(Number(text)) === text.trim() ? Number(text) : text;
  try {
    return parseToSend(text);
  } catch {
    return text;
  }
}
