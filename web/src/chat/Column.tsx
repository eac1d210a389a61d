import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type ReactNode,
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { flushSync } from "react-dom";
import { useT } from "../i18n";
import { useStore } from "../store";
import type { Turn } from "../stream/types";
import { Icon } from "../ui";
import styles from "./Column.module.css";
import { Follower } from "./follower";
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
  /** The run that was begun here last: its question goes to the top. */
  begun?: string | null;
  /** It opens at its start, as a document does, and does not follow its end. */
  fromStart?: boolean;
  ref?: Ref<ColumnHandle>;
}

const GAP = 32;
const GUESSED = 320;
/** Earlier turns are loaded when so little of what is loaded is above. */
const AHEAD = 1500;

/** The turns, of which only those in sight and the next ones are drawn. It stays where the reader is. */
export function Column({ turns, render, below, older, begun = null, fromStart = false, ref }: ColumnProps) {
  const t = useT();
  const scroller = useRef<HTMLDivElement>(null);
  const [follower] = useState(() => new Follower(fromStart));
  const { left, pinned } = useSyncExternalStore(follower.subscribe, follower.get);
  // After an edit another branch is shown, and nothing of it is new to who made it.
  const isNew = left !== null && left !== turns.at(-1) && turns.some(({ id }) => id === left.id);
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
    // Earlier turns that come push nothing away. The end is followed by the follower.
    anchorTo: fromStart ? "start" : "end",
    scrollEndThreshold: -1,
  });
  useImperativeHandle(ref, () => ({
    toEnd: () => follower.toEnd(),
    toTurn: (id) => goTo(turns.findIndex((turn) => turn.id === id)),
    step: (by) => {
      const top = (virtual.scrollOffset ?? 0) + 4;
      const first = virtual.getVirtualItemForOffset(top)?.index ?? 0;
      goTo(
        Math.max(
          0,
          Math.min(
            turns.length - 1,
            by === -1 && (virtual.measurementsCache[first]?.start ?? 0) < top - 8 ? first : first + by,
          ),
        ),
      );
    },
  }));
  const scrolled = () => {
    follower.scrolled();
    if (older && (scroller.current?.scrollTop ?? 0) < AHEAD) older();
  };
  /** Shows a turn at the top. */
  const goTo = (index: number) => {
    follower.release();
    virtual.scrollToIndex(index, { align: "start" });
    requestAnimationFrame(scrolled);
  };
  useEffect(() => follower.attach(scroller.current), [follower]);
  useLayoutEffect(() => follower.shows(turns, begun), [follower, turns, begun]);
  const pinnedAt = pinned === null ? -1 : turns.findIndex(({ id }) => id === pinned);
  useLayoutEffect(() => {
    const index = virtual.options.count - 1;
    if (pinned !== null && virtual.options.getItemKey(index) === pinned)
      virtual.scrollToIndex(index, { align: "start" });
  }, [virtual, pinned]);
  useEffect(() => {
    if (older && (scroller.current?.scrollHeight ?? 0) < AHEAD) older();
  }, [older, turns.length]);
  const items = virtual.getVirtualItems();
  const spare =
    (virtual.scrollRect?.height ?? 0) + (virtual.measurementsCache[pinnedAt]?.start ?? 0) - virtual.getTotalSize();
  return (
    <div className={styles["frame"]}>
      <div
        ref={scroller}
        className={styles["scroller"]}
        onScroll={scrolled}
        tabIndex={0}
        role="region"
        aria-label={t("chat.column")}
      >
        <div className={styles["column"]} onClickCapture={(event) => opensFold(event.target) && follower.hold()}>
          <div className={styles["room"]} style={{ height: virtual.getTotalSize() }}>
            <div className={styles["rows"]} style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
              {items.map((item) => {
                const turn = turns[item.index];
                return (
                  turn && (
                    <div key={item.key} data-index={item.index} data-turn={turn.id} ref={virtual.measureElement}>
                      <Row
                        turn={turn}
                        isLast={item.index === turns.length - 1}
                        height={item.size}
                        prints={prints}
                        render={render}
                      />
                    </div>
                  )
                );
              })}
            </div>
          </div>
          <div
            className={styles["tail"]}
            style={pinnedAt === -1 ? undefined : { minHeight: `calc(${spare}px - 2 * var(--edge))` }}
          >
            <div className={styles["below"]}>{below}</div>
          </div>
        </div>
      </div>
      {left && (
        <button type="button" className={styles["toEnd"]} onClick={() => follower.toEnd()}>
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

const opensFold = (target: EventTarget): boolean =>
  target instanceof Element && target.closest("[aria-expanded]") !== null;
