import type { ModelChecked } from "../api/types";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { modelName } from "../layout/Chips";
import { Button, Icon } from "../ui";
import styles from "./Connect.module.css";

/** The model has answered: what is known of it. */
export function Done({ checked: { model, window, origin }, onClose }: { checked: ModelChecked; onClose: () => void }) {
  const t = useT();
  return (
    <div className={styles["steps"]}>
      <p className={styles["done"]} role="status">
        <Icon name="check" />
        <span>{t("connect.answers", { model: modelName(model) })}</span>
      </p>
      <p className={styles["about"]}>{t(`connect.window.${origin}`, { n: number(window) })}</p>
      <div className={styles["buttons"]}>
        <Button kind="primary" autoFocus onClick={onClose}>
          {t("connect.ask")}
        </Button>
      </div>
    </div>
  );
}
