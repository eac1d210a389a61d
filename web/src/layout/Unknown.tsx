import { useT } from "../i18n";
import { navigate, toNew } from "../route";
import { Button } from "../ui";
import styles from "./Boundary.module.css";

/** An address that leads to no page. */
export function Unknown() {
  const t = useT();
  return (
    <main className={styles["alone"]}>
      <p>{t("shell.unknown")}</p>
      <Button kind="primary" onClick={() => navigate(toNew)}>
        {t("shell.home")}
      </Button>
    </main>
  );
}
