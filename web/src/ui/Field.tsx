import { type ReactNode, useId } from "react";
import styles from "./Field.module.css";
import { classes } from "./classes";

interface Given {
  id: string;
  className: string | undefined;
  "aria-invalid": boolean;
  "aria-describedby": string | undefined;
}

interface FieldProps {
  label: string;
  hint?: string | undefined;
  /** What is wrong with it. */
  wrong?: string | undefined;
  className?: string | undefined;
  children: (given: Given) => ReactNode;
}

/** A field of a form with its label above it, and what there is to say of it below. */
export function Field({ label, hint, wrong, className, children }: FieldProps) {
  const id = useId();
  const notes = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  return (
    <div className={classes(styles["field"], className)}>
      <label htmlFor={id} className={styles["label"]}>
        {label}
      </label>
      {children({
        id,
        className: styles["input"],
        "aria-invalid": wrong !== undefined,
        "aria-describedby": notes || undefined,
      })}
      {hint && (
        <p id={`${id}-hint`} className={styles["hint"]}>
          {hint}
        </p>
      )}
      {wrong && (
        <p id={`${id}-wrong`} className={styles["wrong"]}>
          {wrong}
        </p>
      )}
    </div>
  );
}
