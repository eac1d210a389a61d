import { useEffect, useState } from "react";
import { duration } from "../i18n/format";

/** How long it has been since `since`, while it lasts. */
export function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return <>{duration(Math.max(0, now - since))}</>;
}
