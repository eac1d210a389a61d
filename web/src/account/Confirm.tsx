import type { ReactNode } from "react";
import { useT } from "../i18n";
import { Button, Dialog } from "../ui";
import styles from "./Forms.module.css";

interface ConfirmProps {
  open: boolean;
  title: string;
  /** What is done. */
  act: string;
  busy?: boolean;
  onAct: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before what cannot be undone. */
export function Confirm({ open, title, act, busy = false, onAct, onClose, children }: ConfirmProps) {
  const t = useT();
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      <form className={styles["dialog"]} onSubmit={(event) => (event.preventDefault(), onAct())}>
        {children}
        <div className={styles["end"]}>
          <Button onClick={onClose}>{t("settings.cancel")}</Button>
          <Button type="submit" kind="danger" disabled={busy}>
            {act}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
