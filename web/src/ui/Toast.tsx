import { createPortal } from "react-dom";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { useT } from "../i18n";
import { useStore } from "../store";
import { Button } from "./Button";
import { IconButton } from "./IconButton";
import styles from "./Toast.module.css";
import { type Toast, toasts, unsay } from "./toasts";

const STAYS_MS = 6000;
/** So many are shown at a time, the newest. */
const MOST = 3;

/** What was said, the newest last. It stays while somebody points at it or has the focus in it. */
export function Toasts() {
  const [held, setHeld] = useState(false);
  const said = useStore(toasts);
  const viewport = useRef<HTMLDivElement>(null);
  // Dialogs begin below it.
  useLayoutEffect(() => {
    const end = said.length ? (viewport.current?.getBoundingClientRect().bottom ?? 0) : 0;
    document.documentElement.style.setProperty("--toasts", `${Math.ceil(end)}px`);
  }, [said]);
  // Beside the page and not in it: what lies over the page, such as the list on a phone, must not lie over «Undo».
  return createPortal(
    // Pointed at, it stays: there is nothing to press.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={viewport}
      role="status"
      aria-live="polite"
      className={styles["viewport"]}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      {said.slice(-MOST).map((toast) => (
        <One key={toast.id} toast={toast} held={held} />
      ))}
    </div>,
    document.body,
  );
}

function One({ toast: { id, text, action, kind, stays = STAYS_MS }, held }: { toast: Toast; held: boolean }) {
  const t = useT();
  useEffect(() => {
    if (held) return;
    const timer = setTimeout(() => unsay(id), stays);
    return () => clearTimeout(timer);
  }, [held, id, stays]);
  return (
    <div className={styles["toast"]} data-kind={kind}>
      <span className={styles["text"]}>{text}</span>
      {action && <Button onClick={() => (unsay(id), action.onClick())}>{action.label}</Button>}
      <IconButton icon="close" label={t("shell.close")} onClick={() => unsay(id)} />
    </div>
  );
}
