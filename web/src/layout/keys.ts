import { useEffect, useEffectEvent } from "react";

const typed = (target: EventTarget | null) =>
  target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;

/** `Mod+Shift+O`, as an event says it. A character that needs Shift, such as `?`, has none. */
function spelled(event: KeyboardEvent): string {
  const isLetter = /^[a-z]$/i.test(event.key);
  const names = [
    (event.metaKey || event.ctrlKey) && "Mod",
    event.altKey && "Alt",
    event.shiftKey && isLetter && "Shift",
  ];
  return [...names.filter(Boolean), isLetter ? event.key.toUpperCase() : event.key].join("+");
}

/** Keys of the whole page. One without ⌘ or Ctrl is left to whoever types, and all are while an input method composes. */
export function useKeys(keys: Record<string, () => void>) {
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
    const name = spelled(event);
    const act = keys[name];
    if (!act || (!name.startsWith("Mod+") && typed(event.target))) return;
    event.preventDefault();
    act();
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent) => press(event);
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
}
