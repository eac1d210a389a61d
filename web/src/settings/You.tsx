import { useEffect, useRef } from "react";
import { Appearance } from "./Appearance";
import { Notifications } from "./Notifications";
import { Usage } from "./Usage";

/** How the page looks and speaks to you, and what your questions have used. `part` is shown first. */
export function You({ part }: { part?: string | undefined }) {
  const usage = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (part === "usage") usage.current?.scrollIntoView();
  }, [part]);
  return (
    <>
      <Appearance />
      <Notifications />
      <div ref={usage}>
        <Usage />
      </div>
    </>
  );
}
