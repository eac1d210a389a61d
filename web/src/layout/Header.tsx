import { useT } from "../i18n";
import { toggleInspector } from "../inspector/selection";
import { IconButton } from "../ui";
import styles from "./Header.module.css";
import { openDrawer } from "./drawer";
import { useWidth } from "./width";

export interface HeaderProps {
  threadId: string | null;
}

/** The line above the column. */
export function Header({ threadId }: HeaderProps) {
  const t = useT();
  const width = useWidth();
  return (
    <header className={styles["header"]}>
      {width === "narrow" && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
      <h1 className={styles["title"]}>{threadId === null ? t("shell.new") : threadId}</h1>
      <span className={styles["space"]} />
      {threadId !== null && <IconButton icon="panel" label={t("shell.inspector")} keys="Mod+." onClick={toggleInspector} />}
    </header>
  );
}
