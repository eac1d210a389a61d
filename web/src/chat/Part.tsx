import { type ReactNode, createContext, useContext, useEffect, useState } from "react";
import { inTurn } from "./inTurn";

/** Whether what is below is drawn a part at a time. */
export const InParts = createContext(false);

/** A part of a turn, drawn in a task of its own where that is asked for: so none is long. */
export function Part({ children }: { children: ReactNode }) {
  const waits = useContext(InParts);
  const [drawn, setDrawn] = useState(!waits);
  useEffect(() => (drawn ? undefined : inTurn(() => setDrawn(true))), [drawn]);
  return drawn || !waits ? children : <span data-undrawn />;
}
