import { Tabs } from "@base-ui/react/tabs";
import { type KeyboardEvent, useEffect, useRef } from "react";
import { useT } from "../i18n";
import { IconButton } from "../ui";
import { ContextTab } from "./ContextTab";
import styles from "./Inspector.module.css";
import { MemoryTab } from "./MemoryTab";
import { QueryTab } from "./QueryTab";
import { RunTab } from "./RunTab";
import type { InspectorProps } from "./Inspector";
import { type Selection, TABS, type Tab, openInspector } from "./selection";

/** A conversation looked into: its queries, what the model saw, what is remembered, and how its runs went. */
export function InspectorPanel({ threadId, selection, onClose }: InspectorProps) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const seen = useRef<Selection | null>(null);
  useEffect(() => {
    // What was asked for has the focus.
    if (seen.current !== selection) box.current?.focus({ preventScroll: true });
    seen.current = selection;
  }, [selection]);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.nativeEvent.isComposing) return;
    event.stopPropagation();
    onClose();
  };
  return (
    <Tabs.Root
      className={styles["inspector"]}
      value={selection.tab}
      onValueChange={(tab: Tab) => openInspector({ ...selection, tab })}
      onKeyDown={press}
    >
      <div className={styles["head"]}>
        <Tabs.List className={styles["tabs"]} aria-label={t("shell.inspector")}>
          {TABS.map((tab) => (
            <Tabs.Tab key={tab} value={tab} className={styles["tab"]}>
              {t(`inspector.tab.${tab}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <IconButton icon="close" label={t("shell.close")} keys="Esc" onClick={onClose} />
      </div>
      <div ref={box} className={styles["body"]} tabIndex={-1}>
        <Tabs.Panel value="query" tabIndex={-1}>
          <QueryTab threadId={threadId} step={selection.step} rows={selection.rows} />
        </Tabs.Panel>
        <Tabs.Panel value="context" tabIndex={-1}>
          <ContextTab threadId={threadId} call={selection.call} />
        </Tabs.Panel>
        <Tabs.Panel value="memory" tabIndex={-1}>
          <MemoryTab threadId={threadId} />
        </Tabs.Panel>
        <Tabs.Panel value="run" tabIndex={-1}>
          <RunTab threadId={threadId} run={selection.run} />
        </Tabs.Panel>
      </div>
    </Tabs.Root>
  );
}
