import { Dialog as Base } from "@base-ui/react/dialog";
import type { ReactNode, RefObject } from "react";
import styles from "./Dialog.module.css";
import { useT } from "../i18n";
import { Icon } from "./Icon";
import { classes } from "./classes";

export interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** The title is said, not seen. */
  untitled?: boolean;
  /** Where it stands: in the middle, also with room for code, at the top as a palette, or a panel at a side. */
  place?: "middle" | "broad" | "top" | "left" | "right";
  children: ReactNode;
  className?: string;
  /** What has the focus first; the first thing that can have it, by default. */
  focus?: RefObject<HTMLElement | null>;
  /** What has it when the dialog is closed; what had it before, by default. */
  back?: RefObject<HTMLElement | null>;
}

/** A dialog once it has been opened. */
export function OpenDialog({
  open,
  onClose,
  title,
  untitled,
  place = "middle",
  children,
  className,
  focus,
  back,
}: DialogProps) {
  const t = useT();
  return (
    <Base.Root open={open} onOpenChange={(next) => next || onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles["veil"]} />
        <Base.Popup
          className={classes(styles["popup"], styles[place], className)}
          {...(focus ? { initialFocus: focus } : {})}
          {...(back ? { finalFocus: () => back.current ?? true } : {})}
        >
          <Base.Title className={untitled ? "unseen" : styles["title"]}>{title}</Base.Title>
          {children}
          {(place === "middle" || place === "broad") && (
            <Base.Close className={styles["close"]} aria-label={t("shell.close")}>
              <Icon name="close" size={16} />
            </Base.Close>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
