import type { ReactNode } from "react";
import { useT } from "../i18n";
import { Inspector } from "../inspector/Inspector";
import { closeInspector, useSelection } from "../inspector/selection";
import { Sidebar } from "../sidebar/Sidebar";
import { useStore } from "../store";
import { Dialog } from "../ui";
import { Boundary } from "./Boundary";
import styles from "./Layout.module.css";
import { closeDrawer, useDrawer } from "./drawer";
import { OfflineBar } from "./OfflineBar";
import { Splitter, inspectorWidth } from "./Splitter";
import { useWidth } from "./width";

/** The three zones. `thread` is the conversation that is shown; `inspects`: the inspector can be opened beside it. */
export function Layout({
  thread,
  inspects = false,
  children,
}: {
  thread: string | null;
  inspects?: boolean;
  children: ReactNode;
}) {
  const t = useT();
  return (
    <div className={styles["layout"]}>
      <a className={styles["skip"]} href="#question">
        {t("shell.skip")}
      </a>
      <List active={thread} />
      <main className={styles["main"]}>
        <OfflineBar />
        {children}
      </main>
      {inspects && thread !== null && <Beside thread={thread} />}
    </div>
  );
}

function List({ active }: { active: string | null }) {
  const t = useT();
  const open = useDrawer();
  if (useWidth() !== "narrow") {
    return (
      <nav className={styles["side"]} aria-label={t("shell.conversations")}>
        <Sidebar active={active} />
      </nav>
    );
  }
  return (
    <Dialog
      open={open}
      onClose={closeDrawer}
      title={t("shell.conversations")}
      untitled
      place="left"
      className={styles["drawer"]}
    >
      <Sidebar active={active} />
    </Dialog>
  );
}

/** The inspector: a zone of its own where there is room, else above the column. */
function Beside({ thread }: { thread: string }) {
  const t = useT();
  const width = useWidth();
  const selection = useSelection();
  const pixels = useStore(inspectorWidth);
  const inspector = selection && (
    <Boundary key={thread}>
      <Inspector threadId={thread} selection={selection} onClose={closeInspector} />
    </Boundary>
  );
  if (width === "wide") {
    if (!inspector) return null;
    return (
      <aside className={styles["inspector"]} style={{ width: pixels }} aria-label={t("shell.inspector")}>
        <Splitter />
        {inspector}
      </aside>
    );
  }
  return (
    <Dialog
      open={selection !== null}
      onClose={closeInspector}
      title={t("shell.inspector")}
      untitled
      place="right"
      className={styles["sheet"]}
    >
      {inspector}
    </Dialog>
  );
}
