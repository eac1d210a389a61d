import { useEffect, useState } from "react";
import styles from "./Skeleton.module.css";

/** True once `ms` have passed: what comes sooner needs no skeleton. */
export function useLate(ms: number, waiting = true): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!waiting) return;
    const timer = setTimeout(() => setLate(true), ms);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [ms, waiting]);
  return late && waiting;
}

/** Grey lines where text will stand, after 150 ms. */
export function Skeleton({ lines = 3, label }: { lines?: number; label: string }) {
  const late = useLate(150);
  return (
    <div role="status" aria-label={label} className={styles["lines"]}>
      {late && Array.from({ length: lines }, (_, index) => <span key={index} className={styles["line"]} />)}
    </div>
  );
}
