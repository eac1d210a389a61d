import { type KeyboardEvent, useRef } from "react";
import { useT } from "../i18n";
import styles from "./ResultCard.module.css";

export type View = "value" | "table" | "chart" | "sql";

interface ViewsProps {
  /** Begins the ids of the tabs and their panels. */
  id: string;
  views: readonly View[];
  view: View;
  onChoose: (view: View) => void;
}

export const tabId = (id: string, view: View) => `${id}-tab-${view}`;
export const panelId = (id: string, view: View) => `${id}-panel-${view}`;

/** The tabs of a card: arrows, Home and End go from one to the other. */
export function Views({ id, views, view, onChoose }: ViewsProps) {
  const t = useT();
  const list = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent) => {
    const at = views.indexOf(view);
    const to = {
      ArrowRight: (at + 1) % views.length,
      ArrowLeft: (at + views.length - 1) % views.length,
      Home: 0,
      End: views.length - 1,
    }[event.key];
    const next = to === undefined ? undefined : views[to];
    if (to === undefined || next === undefined) return;
    event.preventDefault();
    onChoose(next);
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[to]?.focus();
  };
  return (
    // The tabs in it have the focus.
    // oxlint-disable-next-line jsx-a11y/interactive-supports-focus
    <div ref={list} role="tablist" className={styles["tabs"]} aria-label={t("results.views")} onKeyDown={press}>
      {views.map((each) => (
        <button
          key={each}
          type="button"
          role="tab"
          id={tabId(id, each)}
          className={styles["tab"]}
          aria-selected={each === view}
          aria-controls={each === view ? panelId(id, each) : undefined}
          tabIndex={each === view ? 0 : -1}
          data-active={each === view ? "" : undefined}
          onClick={() => onChoose(each)}
        >
          {t(`results.view.${each}`)}
        </button>
      ))}
    </div>
  );
}
