import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactElement } from "react";
import { Kbd } from "./Kbd";
import styles from "./Tooltip.module.css";

/** `children` is one element that takes a ref. Its own label says the same to those who listen. */
export function Tooltip({ text, keys, children }: { text: string; keys?: string; children: ReactElement }) {
  return (
    <Base.Root>
      <Base.Trigger render={children} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} className={styles["positioner"]}>
          <Base.Popup className={styles["popup"]}>
            {text} {keys && <Kbd keys={keys} />}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
