import { useEffect, useState } from "react";
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

/** How long it has been since `since`, while it lasts. */
export const Elapsed = ({ since }: { since: number }) => <>{duration(Math.max(0, useNow() - since))}</>;

/** A dot that changes each second: something is under way. An animation without an end would keep what is typed waiting for its frames. */
export const Pulse = () => <span className={styles["pulse"]} data-dim={Math.floor(useNow() / 1000) % 2 === 1} aria-hidden="true" />;
