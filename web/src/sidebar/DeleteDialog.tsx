import { type FormEvent, useState } from "react";
import { useT } from "../i18n";
import { Button } from "../ui";
import styles from "./DeleteDialog.module.css";
import { remove } from "./actions";

interface DeleteDialogProps {
  id: string;
  label: string;
  /** How many memories come from this conversation alone. */
  memories: number;
  onDone: () => void;
}

/** Asks what shall become of what was remembered from a conversation. */
export function DeleteDialog({ id, label, memories, onDone }: DeleteDialogProps) {
  const t = useT();
  const [choice, setChoice] = useState<"keep" | "delete">("keep");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onDone();
    void remove({ id, label }, choice);
  };
  return (
    <form onSubmit={submit}>
      <p className={styles["name"]} dir="auto">
        {label || t("shell.untitled")}
      </p>
      <fieldset className={styles["choices"]}>
        <legend>{t("list.delete.remembered", { n: memories })}</legend>
        {(["keep", "delete"] as const).map((each) => (
          <label key={each} className={styles["choice"]}>
            <input type="radio" name="memories" checked={choice === each} onChange={() => setChoice(each)} />
            {t(`list.delete.memories.${each}`)}
          </label>
        ))}
      </fieldset>
      <div className={styles["buttons"]}>
        <Button kind="quiet" onClick={onDone}>
          {t("list.delete.cancel")}
        </Button>
        <Button kind="danger" type="submit">
          {t("list.delete")}
        </Button>
      </div>
    </form>
  );
}
