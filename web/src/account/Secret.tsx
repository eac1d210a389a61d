import { useState } from "react";
import { copyText } from "../chat/clipboard";
import { useT } from "../i18n";
import { Button } from "../ui";
import styles from "./Forms.module.css";

/** What is shown this once: a link, or a key. */
export function Secret({ label, text, note }: { label: string; text: string; note: string }) {
  const t = useT();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
  };
  return (
    <div className={styles["secret"]} role="status">
      <strong>{label}</strong>
      <div className={styles["buttons"]}>
        <input
          className={styles["once"]}
          readOnly
          aria-label={label}
          value={text}
          onFocus={(event) => event.currentTarget.select()}
        />
        <Button kind="primary" autoFocus onClick={() => void copy()}>
          {t(copied ? "chat.copied" : "account.copy")}
        </Button>
      </div>
      <p className={styles["note"]}>{note}</p>
    </div>
  );
}
