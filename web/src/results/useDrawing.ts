import { type RefObject, useEffect, useState } from "react";
import type { Words } from "./draw";
import type { Spec } from "./forms";

/** What a mark stands for, and where. */
export interface Told {
  readonly lines: readonly string[];
  readonly x: number;
  readonly y: number;
}

/** Draws a chart into `box`, as wide as that is, and again when that changes. */
export function useDrawing(box: RefObject<HTMLElement | null>, spec: Spec, words: Words) {
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({ busy: true, error: null });
  const [told, setTold] = useState<Told | null>(null);
  useEffect(() => {
    const place = box.current;
    if (!place) return;
    let width = 0;
    let end = () => {};
    const show = async () => {
      const room = Math.floor(place.clientWidth / 8) * 8;
      if (room <= 0 || room === width) return;
      width = room;
      try {
        const { draw } = await import("./draw");
        const made = await draw(spec, room, words, (_, event, __, value) => setTold(toldOf(event, value)));
        if (room !== width) return made.end();
        end();
        end = made.end;
        place.replaceChildren(made.stage);
        // What scrolls is reached by the keyboard.
        if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
        else place.removeAttribute("tabindex");
        setState({ busy: false, error: null });
      } catch (error) {
        if (room === width) setState({ busy: false, error });
      }
    };
    const sight = new ResizeObserver(() => void show());
    sight.observe(place);
    return () => {
      sight.disconnect();
      width = -1;
      end();
      place.replaceChildren();
      setTold(null);
    };
  }, [box, spec, words]);
  return { ...state, told };
}

function toldOf(event: MouseEvent, value: unknown): Told | null {
  if (value === null || value === undefined || value === "") return null;
  const lines =
    typeof value === "object"
      ? Object.entries(value).map(([name, said]) => `${name}: ${String(said)}`)
      : [String(value)];
  return { lines, x: event.clientX, y: event.clientY };
}
