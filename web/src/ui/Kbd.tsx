import styles from "./Kbd.module.css";

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Keys as this system writes them: `Mod` is ⌘ or Ctrl. */
export function spell(keys: string): string {
  const names = isMac ? { Mod: "⌘", Shift: "⇧", Alt: "⌥" } : { Mod: "Ctrl+", Shift: "Shift+", Alt: "Alt+" };
  return keys.replace(/(Mod|Shift|Alt)\+/g, (_, name: keyof typeof names) => names[name]);
}

export const Kbd = ({ keys }: { keys: string }) => <kbd className={styles["kbd"]}>{spell(keys)}</kbd>;
