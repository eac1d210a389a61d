// Where the view stays while what is shown changes its size.

import type { Turn } from "../stream/types";

/** A reader this near to the end follows it. */
const NEAR = 24;

export interface Place {
  /** The last turn as it was when the reader left what is followed; null: they are there. */
  readonly left: Turn | null;
  /** The turn whose question was put at the top: below it there is room for its answer. */
  readonly pinned: string | null;
}

const endOf = (box: HTMLElement) => box.scrollHeight - box.clientHeight;

/**
 * Who is at the end follows it, but no further than the question of a run that has begun meanwhile: an answer is read
 * from its start, and does not run away. A question that was asked here goes to the top at once. Who scrolls stays
 * where they are.
 */
export class Follower {
  private place: Place = { left: null, pinned: null };
  private readonly listeners = new Set<() => void>();
  private box: HTMLElement | null = null;
  private turns: readonly Turn[] = [];
  private follows: boolean;
  /** The turn that is followed no further than to its question. */
  private cap: string | null = null;
  /** A fold was opened: what grows then pushes nothing away. */
  private held = false;
  /** How far down the reader was when it was last scrolled. */
  private at = 0;
  /** The run whose question was put at the top last. */
  private begun: string | null = null;
  private readonly fromStart: boolean;

  constructor(fromStart: boolean) {
    this.fromStart = fromStart;
    this.follows = !fromStart;
  }

  readonly get = (): Place => this.place;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Watches a box and the column in it. Returns what ends that. */
  attach(box: HTMLElement | null): (() => void) | undefined {
    this.box = box;
    if (!box?.firstElementChild) return undefined;
    const observer = new ResizeObserver(() => this.settle());
    for (const each of [box, box.firstElementChild]) observer.observe(each);
    return () => observer.disconnect();
  }

  /** These turns are shown now; `begun` is the run that was begun here last. */
  shows(turns: readonly Turn[], begun: string | null): void {
    const [before, last] = [this.turns.at(-1), turns.at(-1)];
    this.turns = turns;
    if (!last || this.fromStart) return;
    if (this.cap !== null && !turns.some(({ id }) => id === this.cap)) [this.cap, this.follows] = [null, false];
    if (begun !== null && begun !== this.begun && begun === last.run?.id) {
      this.begun = begun;
      [this.cap, this.follows, this.held] = [last.id, true, false];
      this.put({ left: null, pinned: last.question ? last.id : this.place.pinned });
      this.settle();
    } else if (this.follows && this.cap === null && (before ? before.id !== last.id : last.run?.status === "running"))
      this.cap = last.id;
  }

  /** What is shown, or its box, has another size. */
  settle(): void {
    const { box } = this;
    if (!box) return;
    const top = this.capTop(box);
    if (this.follows && (this.cap === null || top !== null)) box.scrollTop = Math.min(endOf(box), top ?? Infinity);
    if (endOf(box) - box.scrollTop <= NEAR) {
      this.follows ||= !this.held && !this.fromStart;
      this.put({ left: null });
    } else if (!this.fromStart && !(this.follows && top === null)) this.leave();
  }

  /** The box was scrolled, by whomever. */
  scrolled(): void {
    const { box } = this;
    if (!box) return;
    const top = this.capTop(box);
    const isUp = box.scrollTop < this.at && box.scrollTop < Math.min(top ?? Infinity, endOf(box)) - NEAR;
    const isPast = top !== null && box.scrollTop > top + NEAR;
    this.held = false;
    this.at = box.scrollTop;
    if (isPast) this.cap = null;
    if (endOf(box) - box.scrollTop <= NEAR) {
      this.follows = !this.fromStart;
      this.put({ left: null });
      // What turns out to be taller than was guessed pushes the end away: only who scrolls leaves it.
    } else if (this.fromStart || isPast || isUp) {
      this.follows = false;
      this.leave();
    }
  }

  /** A fold is opened or closed: its line stays in its place. */
  hold(): void {
    [this.held, this.follows] = [true, false];
  }

  /** The reader goes elsewhere. */
  release(): void {
    [this.cap, this.follows] = [null, false];
    this.leave();
  }

  toEnd(): void {
    [this.cap, this.follows] = [null, true];
    this.settle();
  }

  /** The offset of the turn that is followed no further; null: there is none, or it is not drawn. */
  private capTop(box: HTMLElement): number | null {
    const row = this.cap === null ? null : box.querySelector(`[data-turn="${CSS.escape(this.cap)}"]`);
    const rows = row?.parentElement?.parentElement;
    return row && rows ? row.getBoundingClientRect().top - rows.getBoundingClientRect().top : null;
  }

  private leave(): void {
    this.put({ left: this.place.left ?? this.turns.at(-1) ?? null });
  }

  private put(change: Partial<Place>): void {
    const next = { ...this.place, ...change };
    if (next.left === this.place.left && next.pinned === this.place.pinned) return;
    this.place = next;
    this.listeners.forEach((each) => each());
  }
}
