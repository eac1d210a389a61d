import { useT } from "../i18n";
import { useOnline } from "../stream/useConversation";
import { useLate } from "../ui";
import styles from "./OfflineBar.module.css";

const PATIENCE_MS = 2000;

/** Says that the server is not heard. The page tries again by itself. */
export function OfflineBar() {
  const t = useT();
  const away = useLate(PATIENCE_MS, !useOnline());
  return (
    <div role="status" className={styles["bar"]} hidden={!away}>
      {away && t("shell.offline")}
    </div>
  );
}
