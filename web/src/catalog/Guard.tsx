import { useEffect, useRef, useState } from "react";
import { useT } from "../i18n";
import { guardLeaving } from "../route";
import { Button, Dialog } from "../ui";
import styles from "./Catalog.module.css";

/** Asks before unsaved changes are left: within the page, and when its tab is closed. */
export function Guard({ dirty, name, onDiscard }: { dirty: boolean; name: string; onDiscard: () => void }) {
  const t = useT();
  const [leaving, setLeaving] = useState<(() => void) | null>(null);
  const off = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    off.current = guardLeaving((go) => setLeaving(() => go));
    return () => {
      window.removeEventListener("beforeunload", warn);
      off.current();
    };
  }, [dirty]);
  const leave = () => {
    setLeaving(null);
    off.current();
    onDiscard();
    leaving?.();
  };
  return (
    <Dialog open={leaving !== null} onClose={() => setLeaving(null)} title={t("catalog.leave")}>
      <p className={styles["told"]}>{t("catalog.leaveAbout", { name })}</p>
      <div className={styles["buttons"]}>
        <Button onClick={() => setLeaving(null)}>{t("catalog.keep")}</Button>
        <Button kind="danger" onClick={leave}>
          {t("catalog.discard")}
        </Button>
      </div>
    </Dialog>
  );
}
