import { useEffect, useState } from "react";
import { t } from "../i18n";
import { duration } from "../i18n/format";
import styles from "./Turn.module.css";

/** The present time, while it passes. */
function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** What is over sooner says nothing of its time. */
const SOON_MS = 5000;

/** How many seconds it has been since `since`, while it lasts. */
export function Elapsed({ since }: { since: number | null }) {
  const ms = useNow() - (since ?? Infinity);
  if (ms < SOON_MS) return null;
  return ms < 60_000 ? t("format.seconds", { n: Math.floor(ms / 1000) }) : duration(ms);
}

/** A dot that changes each second: something is under way. An animation without an end would keep what is typed waiting for its frames. */
export const Pulse = () => (
  <span className={styles["pulse"]} data-dim={Math.floor(useNow() / 1000) % 2 === 1} aria-hidden="true" />
);
