/** Calls `act` when a column that has just come stands at its end, where it begins. */
export const whenLaidOut = (act: () => void) => void requestAnimationFrame(() => requestAnimationFrame(act));
