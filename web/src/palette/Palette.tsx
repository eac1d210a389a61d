import { type KeyboardEvent, useDeferredValue, useId, useRef, useState } from "react";
import { useT } from "../i18n";
import { navigate, toConversation } from "../route";
import { useList } from "../sidebar/list";
import { Icon, Kbd, classes } from "../ui";
import styles from "./Palette.module.css";
import { type Command, commands } from "./commands";
import { closeOverlay } from "./open";

const MOST_FOUND = 8;

/** What fits the text: conversations, and what can be done. */
function useFound(text: string): Command[] {
  const t = useT();
  const q = useDeferredValue(text.trim());
  const { data } = useList({ q, archived: false });
  const listed = data?.pages.flatMap((page) => page.conversations).slice(0, MOST_FOUND) ?? [];
  const words = text.trim().toLowerCase();
  const done = commands().filter(({ label }) => label.toLowerCase().includes(words));
  const talks = listed.map(
    ({ id, label, match }): Command => ({
      id: `c-${id}`,
      label: label || t("shell.untitled"),
      ...(match && match.text !== label ? { note: match.text } : {}),
      icon: "right",
      act: () => navigate(toConversation(id, match?.message ?? undefined)),
    }),
  );
  return words ? [...done, ...talks] : [...talks, ...done];
}

function act(command: Command | undefined) {
  if (!command) return;
  // First closed: what the command opens has the focus.
  closeOverlay();
  command.act();
}

/** Goes anywhere and does anything, by typing. */
export function Palette() {
  const t = useT();
  const id = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const found = useFound(text);
  const chosen = Math.min(at, found.length - 1);
  const move = (to: number) => {
    setAt(to);
    list.current?.children[to]?.scrollIntoView({ block: "nearest" });
  };
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === "ArrowDown") move((chosen + 1) % found.length);
    else if (event.key === "ArrowUp") move((chosen - 1 + found.length) % found.length);
    else if (event.key === "Enter") act(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        className={styles["input"]}
        role="combobox"
        aria-expanded
        aria-controls={id}
        aria-activedescendant={chosen < 0 ? undefined : `${id}-${chosen}`}
        aria-label={t("palette.hint")}
        placeholder={t("palette.hint")}
        autoComplete="off"
        autoFocus
        value={text}
        onChange={(event) => (setText(event.target.value), setAt(0))}
        onKeyDown={press}
      />
      <ul ref={list} id={id} role="listbox" aria-label={t("shell.palette")} className={styles["list"]}>
        {found.map((command, index) => (
          // Chosen by the keys of the field above.
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            className={classes(styles["item"], index === chosen && styles["chosen"])}
            onPointerMove={() => setAt(index)}
            onClick={() => act(command)}
          >
            <Icon name={command.icon} size={16} />
            <span className={styles["label"]} dir="auto">
              {command.label}
              {command.note && <small>{command.note}</small>}
            </span>
            {command.keys && <Kbd keys={command.keys} />}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className={styles["none"]}>{t("list.nothingFound")}</p>}
    </>
  );
}
