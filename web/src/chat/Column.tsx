import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type Ref, type RefObject, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useT } from "../i18n";
import { useStore } from "../store";
import type { Turn } from "../stream/types";
import { Icon } from "../ui";
import styles from "./Column.module.css";
import { inTurn } from "./inTurn";
import { printing } from "./printing";

export interface ColumnHandle {
  toEnd: () => void;
  /** Shows a turn at the top. */
  toTurn: (id: string) => void;
  /** Shows the question before (-1) or after (1) the one at the top. */
  step: (by: -1 | 1) => void;
}

interface ColumnProps {
  turns: readonly Turn[];
  render: (turn: Turn, isLast: boolean) => ReactNode;
  /** What stands below the last turn. */
  below: ReactNode;
  /** Loads earlier turns; undefined: there are none. */
  older?: (() => void) | undefined;
  /** It opens at its start, as a document does, and does not follow its end. */
  fromStart?: boolean;
  ref?: Ref<ColumnHandle>;
}

/** A reader this near to the end follows it. */
const NEAR = 24;
const GAP = 32;
const GUESSED = 320;
/** Earlier turns are loaded when so little of what is loaded is above. */
const AHEAD = 1500;

/** The turns, of which only those in sight and the next ones are drawn. It stays where the reader is. */
export function Column({ turns, render, below, older, fromStart = false, ref }: ColumnProps) {
  const t = useT();
  const scroller = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const held = useRef(false);
  /** How far down the reader was when it was last scrolled. */
  const at = useRef(0);
  /** The last turn as it was when the reader left the end; null: they are there. */
  const [left, setLeft] = useState<Turn | null>(null);
  const last = turns.at(-1) ?? null;
  // After an edit another branch is shown, and nothing of it is new to who made it.
  const isNew = left !== null && left !== last && turns.some(({ id }) => id === left.id);
  const keyOf = useCallback((index: number) => turns[index]?.id ?? index, [turns]);
  const prints = usePrints();
  const virtual = useVirtualizer({
    count: turns.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => GUESSED,
    getItemKey: keyOf,
    overscan: prints ? turns.length : 3,
    gap: GAP,
    // Rows are light until it is their turn: what is scrolled need not wait for them.
    useFlushSync: false,
    anchorTo: fromStart ? "start" : "end",
    followOnAppend: !fromStart,
    // A fold that the reader opens at the end must not push itself away.
    scrollEndThreshold: held.current ? -1 : NEAR,
  });
  useEnd(scroller, end, held, left === null && !fromStart);
  useImperativeHandle(ref, () => ({
    toEnd: () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight }),
    toTurn: (id) => goTo(turns.findIndex((turn) => turn.id === id)),
    step: (by) => {
      const top = (virtual.scrollOffset ?? 0) + 4;
      const first = virtual.getVirtualItemForOffset(top)?.index ?? 0;
      goTo(Math.max(0, Math.min(turns.length - 1, by === -1 && (virtual.measurementsCache[first]?.start ?? 0) < top - 8 ? first : first + by)));
    },
  }));
  const onScroll = () => {
    const box = scroller.current;
    if (!box) return;
    held.current = false;
    const isUp = box.scrollTop < at.current;
    at.current = box.scrollTop;
    const away = box.scrollHeight - box.scrollTop - box.clientHeight > NEAR;
    // Turns that turn out to be taller than was guessed push the end away: only who scrolls up leaves it.
    setLeft((known) => (away ? (known ?? (isUp || fromStart ? last : null)) : null));
    if (older && box.scrollTop < AHEAD) older();
  };
  /** Shows a turn at the top, and follows the end no more, unless that is there. */
  const goTo = (index: number) => {
    flushSync(() => setLeft(last));
    virtual.scrollToIndex(index, { align: "start" });
    requestAnimationFrame(onScroll);
  };
  useFits(scroller, () => setLeft(null));
  useEffect(() => {
    if (older && (scroller.current?.scrollHeight ?? 0) < AHEAD) older();
  }, [older, turns.length]);
  const items = virtual.getVirtualItems();
  return (
    <div className={styles["frame"]}>
      <div ref={scroller} className={styles["scroller"]} onScroll={onScroll} tabIndex={0} role="region" aria-label={t("chat.column")}>
        <div className={styles["column"]} onClickCapture={(event) => (held.current ||= opensFold(event.target))}>
          <div className={styles["room"]} style={{ height: virtual.getTotalSize() }}>
            <div className={styles["rows"]} style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
              {items.map((item) => {
                const turn = turns[item.index];
                return (
                  turn && (
                    <div key={item.key} data-index={item.index} data-turn={turn.id} ref={virtual.measureElement}>
                      <Row turn={turn} isLast={item.index === turns.length - 1} height={item.size} prints={prints} render={render} />
                    </div>
                  )
                );
              })}
            </div>
          </div>
          <div ref={end} className={styles["below"]}>
            {below}
          </div>
        </div>
      </div>
      {left && (
        <button type="button" className={styles["toEnd"]} onClick={() => scroller.current?.scrollTo({ top: scroller.current.scrollHeight })}>
          <Icon name="down" size={14} /> {isNew && t("chat.new")} <span className="unseen">{t("chat.toEnd")}</span>
        </button>
      )}
    </div>
  );
}

interface RowProps {
  turn: Turn;
  isLast: boolean;
  height: number;
  prints: boolean;
  render: ColumnProps["render"];
}

/** A turn. One that comes into sight is drawn when it is its turn, and has its room meanwhile; the last one at once. */
function Row({ turn, isLast, height, prints, render }: RowProps) {
  const [drawn, setDrawn] = useState(isLast);
  useEffect(() => (drawn ? undefined : inTurn(() => setDrawn(true))), [drawn]);
  return drawn || prints ? render(turn, isLast) : <div style={{ height }} data-undrawn />;
}

/** Whether it is printed: from the page, or by the browser's own command, which does not wait for charts. */
function usePrints(): boolean {
  useEffect(() => {
    const begin = () => flushSync(() => printing.set(true));
    const end = () => printing.set(false);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  return useStore(printing);
}

const opensFold = (target: EventTarget): boolean => target instanceof Element && target.closest("[aria-expanded]") !== null;

/** Calls `onFit` when what is shown has become so short that its end is in sight. */
function useFits(scroller: RefObject<HTMLDivElement | null>, onFit: () => void) {
  const told = useRef(onFit);
  useEffect(() => {
    told.current = onFit;
  });
  useEffect(() => {
    const box = scroller.current;
    const column = box?.firstElementChild;
    if (!box || !column) return;
    const observer = new ResizeObserver(() => box.scrollHeight - box.scrollTop - box.clientHeight <= NEAR && told.current());
    observer.observe(column);
    return () => observer.disconnect();
  }, [scroller]);
}

/** A reader at the end stays there when the turns, what stands below them, or the window changes its size. */
function useEnd(scroller: RefObject<HTMLDivElement | null>, end: RefObject<HTMLDivElement | null>, held: RefObject<boolean>, atEnd: boolean) {
  const follows = useRef(true);
  useLayoutEffect(() => {
    follows.current = atEnd;
  }, [atEnd]);
  useEffect(() => {
    const [box, last, column] = [scroller.current, end.current, scroller.current?.firstElementChild];
    if (!box || !last || !column) return;
    const observer = new ResizeObserver(() => {
      if (follows.current && !held.current) box.scrollTop = box.scrollHeight;
    });
    for (const each of [box, last, column]) observer.observe(each);
    return () => observer.disconnect();
  }, [scroller, end, held]);
}
