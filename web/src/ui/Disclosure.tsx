import { Collapsible } from "@base-ui/react/collapsible";
import type { ReactNode } from "react";
import styles from "./Disclosure.module.css";
import { Icon } from "./Icon";

interface DisclosureProps {
  summary: ReactNode;
  children: ReactNode;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
}

/** A line that opens to what is below it. */
export function Disclosure({ summary, children, open, onOpenChange }: DisclosureProps) {
  const given = open === undefined ? {} : { open };
  return (
    <Collapsible.Root {...given} onOpenChange={(next) => onOpenChange?.(next)}>
      <Collapsible.Trigger className={styles["trigger"]}>
        <span className={styles["arrow"]}>
          <Icon name="right" size={14} />
        </span>
        <span className={styles["summary"]}>{summary}</span>
      </Collapsible.Trigger>
      <Collapsible.Panel className={styles["panel"]}>{children}</Collapsible.Panel>
    </Collapsible.Root>
  );
}
