import { useEffect, useState } from "react";
import { later } from "./later";

const OpenTooltip = later(async () => (await import("./OpenTooltip")).OpenTooltip);

/** Less than the time that a thing is hovered before it tells its name. */
const DRAWN_FIRST_MS = 300;

/** Where all tooltips are shown. The code comes once the page is drawn. */
export function Tooltips() {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const load = () =>
      void OpenTooltip.load().then(
        () => setReady(true),
        () => undefined,
      );
    const timer = setTimeout(load, DRAWN_FIRST_MS);
    return () => clearTimeout(timer);
  }, []);
  return ready && <OpenTooltip fallback={null} />;
}
