import { Toast as Base } from "@base-ui/react/toast";
import { useT } from "../i18n";
import { Button } from "./Button";
import { IconButton } from "./IconButton";
import styles from "./Toast.module.css";

const toasts = Base.createToastManager();

export interface Said {
  text: string;
  /** What can be done about it, such as to undo. */
  action?: { label: string; onClick: () => void };
  /** Milliseconds that it stays; 6,000 by default. */
  stays?: number;
  kind?: "bad";
  onGone?: () => void;
}

/** Says something at the edge of the page for a while. Returns what takes it away. */
export function say({ text, action, stays = 6000, kind, onGone }: Said): () => void {
  const id = toasts.add({
    description: text,
    timeout: stays,
    priority: kind === "bad" ? "high" : "low",
    ...(kind ? { type: kind } : {}),
    ...(onGone ? { onRemove: onGone } : {}),
    ...(action ? { actionProps: { children: action.label, onClick: () => (toasts.close(id), action.onClick()) } } : {}),
  });
  return () => toasts.close(id);
}

export function Toasts() {
  return (
    <Base.Provider toastManager={toasts}>
      <Base.Portal>
        <Base.Viewport className={styles["viewport"]}>
          <List />
        </Base.Viewport>
      </Base.Portal>
    </Base.Provider>
  );
}

function List() {
  const t = useT();
  return Base.useToastManager().toasts.map((toast) => (
    <Base.Root key={toast.id} toast={toast} className={styles["toast"]}>
      <Base.Description className={styles["text"]} />
      {toast.actionProps && <Base.Action render={<Button kind="plain" />} />}
      <Base.Close render={<IconButton icon="close" label={t("shell.close")} />} />
    </Base.Root>
  ));
}
