import { type ReactNode, useId, useState } from "react";
import styles from "./Disclosure.module.css";
import { Icon } from "./Icon";

interface DisclosureProps {
  summary: ReactNode;
  children: ReactNode;
  /** Without it, the line opens and closes by itself. */
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
}

/** A line that opens to what is below it. */
export function Disclosure({ summary, children, open, onOpenChange }: DisclosureProps) {
  const id = useId();
  const [own, setOwn] = useState(false);
  const isOpen = open ?? own;
  const toggle = () => {
    setOwn(!isOpen);
    onOpenChange?.(!isOpen);
  };
  return (
    <div>
      <button
        type="button"
        className={styles["trigger"]}
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={toggle}
      >
        <span className={styles["arrow"]}>
          <Icon name="right" size={14} />
        </span>
        <span className={styles["summary"]}>{summary}</span>
      </button>
      {isOpen && (
        <div id={id} className={styles["panel"]}>
          {children}
        </div>
      )}
    </div>
  );
}
