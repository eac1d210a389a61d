import { useT } from "../i18n";
import { Kbd } from "../ui";
import styles from "./Keys.module.css";

const KEYS = [
  ["Mod+K", "shell.palette"],
  ["Mod+Shift+O", "shell.new"],
  ["/", "keys.composer"],
  ["Enter", "keys.send"],
  ["Shift+Enter", "keys.line"],
  ["Esc", "keys.stop"],
  ["↑", "keys.edit"],
  ["Alt+↑ ↓", "keys.questions"],
  ["Mod+.", "shell.inspector"],
  ["Mod+Shift+C", "keys.copy"],
  ["?", "keys.title"],
] as const;

/** All keys of the page. */
export function Keys() {
  const t = useT();
  return (
    <dl className={styles["keys"]}>
      {KEYS.map(([keys, id]) => (
        <div key={keys} className={styles["row"]}>
          <dt>{t(id)}</dt>
          <dd>
            <Kbd keys={keys} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
