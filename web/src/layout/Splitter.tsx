import type { KeyboardEvent, PointerEvent } from "react";
import { useT } from "../i18n";
import { createKept, useStore } from "../store";
import styles from "./Splitter.module.css";

const LEAST = 340;
const MOST = 640;
const STEP = 20;

const within = (width: number) => Math.round(Math.min(MOST, Math.max(LEAST, width)));
const isWidth = (value: unknown): value is number => typeof value === "number" && value === within(value);

/** Pixels, kept by the browser. */
export const inspectorWidth = createKept("longthread.inspector", 420, isWidth);

/** The inspector's left edge: dragged, or moved by the arrow keys. */
export function Splitter() {
  const t = useT();
  const width = useStore(inspectorWidth);
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId))
      inspectorWidth.set(within(window.innerWidth - event.clientX));
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP, Home: LEAST - MOST, End: MOST - LEAST }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    inspectorWidth.set(within(width + step));
  };
  return (
    <div
      className={styles["splitter"]}
      role="separator"
      aria-orientation="vertical"
      aria-label={t("shell.resize")}
      aria-valuenow={width}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={press}
    />
  );
}
