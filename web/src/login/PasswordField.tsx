import { type Ref, useState } from "react";
import { useT } from "../i18n";
import { Field } from "../ui/Field";
import styles from "./PasswordField.module.css";

interface PasswordFieldProps {
  label: string;
  /** What it is called in the form that is sent. */
  name: string;
  /** Whether a password manager fills in a known password, or offers a new one. */
  isNew?: boolean;
  hint?: string;
  wrong?: string | undefined;
  field?: Ref<HTMLInputElement>;
  autoFocus?: boolean;
  onChange?: () => void;
}

/** A password, which can be shown while it is typed. */
export function PasswordField({
  label,
  name,
  isNew = false,
  hint,
  wrong,
  field,
  autoFocus,
  onChange,
}: PasswordFieldProps) {
  const t = useT();
  const [shown, setShown] = useState(false);
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {({ className, ...given }) => (
        <div className={styles["password"]}>
          <input
            {...given}
            ref={field}
            className={className}
            name={name}
            type={shown ? "text" : "password"}
            required
            maxLength={1000}
            autoComplete={isNew ? "new-password" : "current-password"}
            autoCapitalize="none"
            autoFocus={autoFocus}
            spellCheck={false}
            onChange={onChange}
          />
          <button type="button" className={styles["show"]} aria-pressed={shown} onClick={() => setShown(!shown)}>
            {t("login.show")}
          </button>
        </div>
      )}
    </Field>
  );
}
