import { type RefObject, useEffect } from "react";
import type { Turn } from "../stream/types";
import type { ColumnHandle } from "./Column";
import type { ComposerHandle } from "./Composer";
import { answerOf } from "./Turn";
import { copyAnswer } from "./clipboard";

interface Places {
  turns: readonly Turn[];
  column: RefObject<ColumnHandle | null>;
  composer: RefObject<ComposerHandle | null>;
}

const types = (target: EventTarget | null) =>
  target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;

/** `/` goes to the composer, ⌥↑↓ from question to question, ⌘⇧C copies the last answer. */
export function useThreadKeys({ turns, column, composer }: Places): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      const mod = event.metaKey || event.ctrlKey;
      if (event.key === "/" && !mod && !event.altKey && !types(event.target)) composer.current?.focus();
      else if (event.altKey && !mod && (event.key === "ArrowUp" || event.key === "ArrowDown"))
        column.current?.step(event.key === "ArrowUp" ? -1 : 1);
      else if (mod && event.shiftKey && event.key.toLowerCase() === "c") {
        const last = turns.map(answerOf).findLast(Boolean);
        if (last) void copyAnswer(last);
      } else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [turns, column, composer]);
}
