// Work that is done a piece at a time, so that what is typed or scrolled meanwhile comes between. It goes on in tabs that
// are not seen.

import { flushSync } from "react-dom";

const waiting: (() => void)[] = [];
const channel = new MessageChannel();
let due = false;

channel.port1.addEventListener("message", () => {
  due = false;
  const next = waiting.pop();
  if (waiting.length) ask();
  if (next) flushSync(next);
});
channel.port1.start();

function ask() {
  if (due) return;
  due = true;
  channel.port2.postMessage(null);
}

/** Does the work in a task of its own: what came last, and is looked at now, first. Returns what calls it off. */
export function inTurn(work: () => void): () => void {
  waiting.push(work);
  ask();
  return () => {
    const place = waiting.indexOf(work);
    if (place !== -1) waiting.splice(place, 1);
  };
}

/** Calls `act` when a column that has just come stands at its end, where it begins. */
export const whenLaidOut = (act: () => void) => void requestAnimationFrame(() => requestAnimationFrame(act));
