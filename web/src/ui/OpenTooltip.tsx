import { Tooltip as Base } from "@base-ui/react/tooltip";
import { useEffect } from "react";
import { tooltip } from "./Tooltip";
import styles from "./Tooltip.module.css";

/** The tooltip of the thing that is hovered or has the focus. */
export function OpenTooltip() {
  // What was hovered while this code was loaded has asked nothing of it.
  useEffect(() => {
    const waiting = document.querySelectorAll("[data-base-ui-tooltip-trigger]:is(:hover, :focus-visible)");
    const last = waiting[waiting.length - 1];
    if (last) tooltip.open(last.id);
  }, []);
  return (
    <Base.Root handle={tooltip}>
      {({ payload }) => (
        <Base.Portal>
          <Base.Positioner sideOffset={6} className={styles["positioner"]}>
            <Base.Popup className={styles[payload?.isCard ? "card" : "popup"]}>{payload?.content}</Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      )}
    </Base.Root>
  );
}
