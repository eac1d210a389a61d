import { useState } from "react";
import type { DialogProps } from "./OpenDialog";
import { later } from "./later";

const OpenDialog = later(async () => (await import("./OpenDialog")).OpenDialog);

/** What is above the page until it is closed. The focus goes back to where it was. Its code comes when one is first opened. */
export function Dialog(props: DialogProps) {
  const [seen, setSeen] = useState(props.open);
  if (props.open && !seen) setSeen(true);
  return seen && <OpenDialog {...props} fallback={null} />;
}
