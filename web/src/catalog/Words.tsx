import { useState } from "react";
import styles from "./Catalog.module.css";
import { textsAt, useForm } from "./draft";
import { Field, type FieldProps } from "./fields";

const SEPARATOR = /[,，、\n]/;

/** Texts in one field. What is typed stays as it is until the page is left. */
export function Words(field: FieldProps) {
  const { definition, set } = useForm();
  const [text, setText] = useState(() => textsAt(definition, field.path).join(", "));
  const change = (next: string) => {
    setText(next);
    const words = [
      ...new Set(
        next
          .split(SEPARATOR)
          .map((each) => each.trim())
          .filter(Boolean),
      ),
    ];
    set(field.path, words.length ? words : undefined);
  };
  return (
    <Field {...field}>
      {(given) => (
        <input
          {...given}
          className={styles["input"]}
          dir="auto"
          autoComplete="off"
          value={text}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Field>
  );
}
