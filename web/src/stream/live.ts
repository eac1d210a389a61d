// What a tab hears of the server: the list, and the runs that it watches. Frames are applied once a drawn frame.

import { current } from "../i18n";
import type { ListFrame, StreamEvent } from "./events";
import { type Frame, Leader, type Wanted, keyOf } from "./leader";
import { isBehind } from "./reducer";
import type { Position } from "./types";

/** An event of a run that is watched, or null: there is no such run (any more). */
export type RunListener = (events: readonly { event: StreamEvent; position: Position | null }[] | null) => void;
export type ListListener = (frame: ListFrame) => void;

type Message = { kind: "lead" } | { kind: "want"; tab: string; runs: Wanted } | { kind: "frame"; frame: Frame };

/** A hidden tab draws no frames. */
const HIDDEN_MS = 500;

type RunFrame = Extract<Frame, { kind: "run" }>;

interface Watched {
  position: Position;
  /** What it lacks is asked for, and has not come yet. */
  lacks: boolean;
  listener: RunListener;
}

export class Live {
  private readonly tab = Math.random().toString(36).slice(2);
  private readonly watched = new Map<string, Watched>();
  private readonly listListeners = new Set<ListListener>();
  private readonly stateListeners = new Set<() => void>();
  /** Tabs share a connection with those in their language. */
  private readonly name = `longthread.events.${current()}`;
  private readonly channel = new BroadcastChannel(this.name);
  private leader: Leader | null = null;
  private pending: Frame[] = [];
  private due: { frame: number; timer: ReturnType<typeof setTimeout> } | null = null;
  private connected = true;

  constructor() {
    this.channel.addEventListener("message", (message: MessageEvent<Message>) => this.hear(message.data));
    window.addEventListener("pagehide", () => this.send({ kind: "want", tab: this.tab, runs: {} }));
    window.addEventListener("pageshow", (event) => event.persisted && this.want());
    // Browsers freeze tabs in the background, but none that holds a lock. Without locks (a page over plain HTTP from another host, or a browser that keeps nothing) each tab has its own connection.
    if (!navigator.locks) this.lead();
    else
      navigator.locks
        .request(this.name, () => (this.lead(), new Promise<never>(() => undefined)))
        .catch(() => this.lead());
    this.want();
  }

  /** Whether the server is heard. */
  readonly online = (): boolean => this.connected;

  readonly onState = (listener: () => void): (() => void) => {
    this.stateListeners.add(listener);
    return () => this.stateListeners.delete(listener);
  };

  /** Tells of changes of the list, and of calls that wait, as `GET /api/events` does. */
  onList(listener: ListListener): () => void {
    this.listListeners.add(listener);
    return () => this.listListeners.delete(listener);
  }

  /** Watches a run from a position on, until it ends or waits. There is one listener a run. */
  watch(threadId: string, runId: string, position: Position, listener: RunListener): () => void {
    const key = keyOf(threadId, runId);
    const watched = { position, lacks: false, listener };
    this.watched.set(key, watched);
    this.want();
    return () => {
      if (this.watched.get(key) === watched) this.watched.delete(key);
    };
  }

  private lead(): void {
    const relays = Boolean(navigator.locks);
    this.leader = new Leader((frame) => {
      if (relays) this.send({ kind: "frame", frame });
      this.take(frame);
    });
    this.send({ kind: "lead" });
    this.want();
  }

  private send(message: Message): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows: a channel has none
    this.channel.postMessage(message);
  }

  private want(): void {
    const runs = Object.fromEntries([...this.watched].map(([key, { position }]) => [key, position]));
    if (this.leader) this.leader.want(this.tab, runs);
    else this.send({ kind: "want", tab: this.tab, runs });
  }

  private hear(message: Message): void {
    if (message.kind === "lead") this.want();
    else if (message.kind === "want") this.leader?.want(message.tab, message.runs);
    else this.take(message.frame);
  }

  private take(frame: Frame): void {
    if (frame.kind === "run") {
      const watched = this.watched.get(frame.key);
      if (watched === undefined) return;
      if (frame.position !== null) {
        if (!isBehind(watched.position, frame.position)) return;
        if (isBehind(watched.position, frame.after)) return this.lack(watched);
        watched.position = frame.position;
        watched.lacks = false;
      }
    }
    this.pending.push(frame);
    if (this.due) return;
    this.due = { frame: requestAnimationFrame(() => this.apply()), timer: setTimeout(() => this.apply(), HIDDEN_MS) };
  }

  /** The connection is further than this tab, which joined later or slept: it is opened again from where the tab stands. */
  private lack(watched: Watched): void {
    if (watched.lacks) return;
    watched.lacks = true;
    this.want();
  }

  private apply(): void {
    if (this.due) {
      cancelAnimationFrame(this.due.frame);
      clearTimeout(this.due.timer);
    }
    const frames = this.pending;
    this.pending = [];
    this.due = null;
    const runs = new Map<string, RunFrame[]>();
    for (const frame of frames) {
      if (frame.kind !== "run") continue;
      const events = runs.get(frame.key);
      if (events) events.push(frame);
      else runs.set(frame.key, [frame]);
    }
    for (const [key, events] of runs) this.tellRun(key, events);
    for (const frame of frames) this.tellOther(frame);
  }

  private tellRun(key: string, events: readonly RunFrame[]): void {
    const watched = this.watched.get(key);
    if (events.at(-1)?.halt) this.watched.delete(key);
    // It waited, and went on before that was drawn: the connection is told that it is still watched.
    else if (events.some((each) => each.halt)) this.want();
    watched?.listener(events);
  }

  private tellOther(frame: Frame): void {
    if (frame.kind === "list") this.listListeners.forEach((each) => each(frame));
    if (frame.kind === "gone") {
      const watched = this.watched.get(frame.key);
      this.watched.delete(frame.key);
      watched?.listener(null);
    }
    if (frame.kind === "state" && frame.online !== this.connected) {
      this.connected = frame.online;
      this.stateListeners.forEach((each) => each());
    }
  }
}

const shared = new Map<string, Live>();

/** The tab's own, in the language of the page; it connects when it is first asked for. */
export function live(): Live {
  const found = shared.get(current()) ?? new Live();
  shared.set(current(), found);
  return found;
}
