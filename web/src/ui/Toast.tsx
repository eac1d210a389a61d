import { createPortal } from "react-dom";
import { useEffect, useEffectEvent, useId, useLayoutEffect, useRef, useState } from "react";
import { useT } from "../i18n";
import { useStore } from "../store";
import { Button } from "./Button";
import { IconButton } from "./IconButton";
import styles from "./Toast.module.css";
import { type Toast, clearEnded, end, sayInstead, toasts, unsay } from "./toasts";

const STAYS_MS = 6000;
/** So many are shown at a time, the newest, besides those about which something can be done. */
const MOST = 3;

/** What was said, the newest last. It stays, where it is, while somebody points at it or has the focus in it. */
export function Toasts() {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const said = useStore(toasts);
  const viewport = useRef<HTMLDivElement>(null);
  // Dialogs begin below it.
  useLayoutEffect(() => {
    const end = said.length ? (viewport.current?.getBoundingClientRect().bottom ?? 0) : 0;
    document.documentElement.style.setProperty("--toasts", `${Math.ceil(end)}px`);
  }, [said]);
  useEffect(() => {
    if (!pointed) clearEnded();
  }, [pointed]);
  const leave = (id: number) => (pointed ? end(id) : unsay(id));
  // Beside the page and not in it: what lies over the page, such as the list on a phone, must not lie over «Undo».
  return createPortal(
    // Pointed at, it stays: there is nothing to press.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={viewport}
      role="status"
      aria-live="polite"
      className={styles["viewport"]}
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      {shownOf(said).map((toast) => (
        <One
          key={toast.id}
          toast={toast}
          held={pointed || focused}
          // What had the focus goes, and need not say so.
          onOver={() => (setFocused(false), leave(toast.id))}
          onDone={(text) => (setFocused(false), sayInstead(toast.id, text))}
        />
      ))}
    </div>,
    document.body,
  );
}

function shownOf(said: readonly Toast[]): readonly Toast[] {
  const newest = new Set(said.filter(({ action }) => !action).slice(-MOST));
  return said.filter((toast) => toast.action || newest.has(toast));
}

interface OneProps {
  toast: Toast;
  held: boolean;
  onOver: () => void;
  onDone: (text: string) => void;
}

function One({ toast, held, onOver, onDone }: OneProps) {
  const { id, text, action, kind, stays = STAYS_MS, until } = toast;
  const t = useT();
  const textId = useId();
  const [busy, setBusy] = useState(false);
  const over = useEffectEvent(onOver);
  useEffect(() => {
    if (held || busy) return;
    const timer = setTimeout(() => unsay(id), stays);
    return () => clearTimeout(timer);
  }, [held, busy, id, stays]);
  useEffect(() => {
    if (until === undefined || busy) return;
    const timer = setTimeout(over, until - performance.now());
    return () => clearTimeout(timer);
  }, [until, busy]);
  const act = async (doIt: () => Promise<string>) => {
    setBusy(true);
    try {
      onDone(await doIt());
    } catch {
      // It was said, and can be tried again.
    }
    setBusy(false);
  };
  return (
    <div className={styles["toast"]} data-kind={kind} data-over={toast.over}>
      <span id={textId} className={styles["text"]}>
        {text}
      </span>
      {action && (
        <Button disabled={busy} aria-describedby={textId} onClick={() => void act(action.do)}>
          {action.label}
        </Button>
      )}
      <IconButton icon="close" label={t("shell.close")} onClick={onOver} />
    </div>
  );
}
