import { useT } from "../i18n";
import { Button } from "../ui";
import styles from "./Boards.module.css";

interface ConfirmProps {
  text: string;
  /** What is done. */
  act: string;
  onAct: () => void;
  onDone: () => void;
}

/** Asks before what cannot be undone. */
export function Confirm({ text, act, onAct, onDone }: ConfirmProps) {
  const t = useT();
  return (
    <div className={styles["form"]}>
      <p>{text}</p>
      <div className={styles["buttons"]}>
        <Button kind="quiet" onClick={onDone}>
          {t("boards.cancel")}
        </Button>
        <Button kind="danger" onClick={() => (onDone(), onAct())}>
          {act}
        </Button>
      </div>
    </div>
  );
}
