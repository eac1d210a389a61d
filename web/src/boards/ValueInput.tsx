import type { ParameterKind } from "../api/types";
import styles from "./Boards.module.css";

interface ValueInputProps {
  id?: string;
  label?: string;
  kind: ParameterKind;
  value: string | number;
  onChange: (value: string | number) => void;
}

/** A value of a parameter. A number that is not whole yet is the text that was typed: "". */
export function ValueInput({ id, label, kind, value, onChange }: ValueInputProps) {
  return (
    <input
      id={id}
      aria-label={label}
      className={styles["input"]}
      type={kind}
      value={value}
      maxLength={kind === "text" ? 1000 : undefined}
      step={kind === "number" ? "any" : undefined}
      onChange={(event) =>
        onChange(kind === "number" && event.target.value !== "" ? event.target.valueAsNumber : event.target.value)
      }
    />
  );
}
