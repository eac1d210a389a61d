// The one connection of a browser, in a language. The tab that holds the lock opens it for all tabs, and tells them what comes.

import { queryClient } from "../api/cache";
import { info } from "../api/conversations";
import { parseExact } from "../api/exact";
import { current } from "../i18n";
import type { Info, RunFrame, WatchedRun } from "../api/types";
import type { ListFrame, StreamEvent } from "./events";
import { START, isBehind, positionOf } from "./reducer";
import type { Position } from "./types";

/** Runs by `thread/run`, each with how far it is read. */
export type Wanted = Record<string, Position>;

/**
 * What the connection tells. A run's event without a position is not part of the run. `after` is how far the connection
 * had read the run before it: who has not read as far lacks something. `halt`: no more will come of the run.
 */
export type Frame =
  | ({ kind: "list" } & ListFrame)
  | { kind: "run"; key: string; position: Position | null; after: Position; event: StreamEvent; halt: boolean }
  | { kind: "gone"; key: string }
  | { kind: "state"; online: boolean };

const LIST: readonly ListFrame["name"][] = ["conversations", "conversation", "deleted", "archived", "approvals"];
/** Runs of one connection: the server takes no more. */
const MOST_RUNS = 50;
const LONGEST_WAIT_MS = 8000;
/** A machine that slept this long has lost its connection, though the browser may not know. */
const SLEEP_MS = 90_000;

export const keyOf = (threadId: string, runId: string): string => `${threadId}/${runId}`;

const isInterrupted = (event: StreamEvent): boolean =>
  event.type === "CUSTOM" && event.name === "longthread.interrupted";
const isHalt = (event: StreamEvent): boolean =>
  event.type === "RUN_FINISHED" || event.type === "RUN_ERROR" || isInterrupted(event);

export class Leader {
  private readonly wants = new Map<string, Wanted>();
  private source: EventSource | null = null;
  private order: string[] = [];
  private positions = new Map<string, Position>();
  private listed = "";
  private wait = 1000;
  private due: ReturnType<typeof setTimeout> | undefined;
  private looked = Date.now();
  private readonly lang = current();

  private readonly tell: (frame: Frame) => void;

  constructor(tell: (frame: Frame) => void) {
    this.tell = tell;
    this.open();
    setInterval(() => this.look(), 5000);
    window.addEventListener("online", () => this.open());
  }

  /** A tab says all the runs that it watches. */
  want(tab: string, runs: Wanted): void {
    if (Object.keys(runs).length) this.wants.set(tab, runs);
    else this.wants.delete(tab);
    const lacks = [...this.merged()].some(([key, position]) =>
      isBehind(position, this.positions.get(key) ?? { seq: Infinity, part: 0 }),
    );
    if (lacks) this.openIn(0);
  }

  /** The runs of all tabs, each from where the tab stands that has read the least. */
  private merged(): Map<string, Position> {
    const made = new Map<string, Position>();
    for (const runs of this.wants.values()) {
      for (const [key, position] of Object.entries(runs)) {
        const known = made.get(key);
        if (known === undefined || isBehind(position, known)) made.set(key, position);
      }
    }
    return new Map([...made].slice(-MOST_RUNS));
  }

  private openIn(ms: number): void {
    clearTimeout(this.due);
    this.due = setTimeout(() => this.open(), ms);
  }

  private open(): void {
    clearTimeout(this.due);
    this.source?.close();
    this.positions = this.merged();
    this.order = [...this.positions.keys()];
    const source = new EventSource(`/api/events?${this.query()}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.wait = 1000;
      this.tell({ kind: "state", online: true });
    });
    source.addEventListener("error", () => {
      this.tell({ kind: "state", online: false });
      // What is still connecting tries by itself. A proxy's answer, or one that refuses the positions, ends it for good.
      if (source.readyState === EventSource.CLOSED) this.again();
    });
    for (const name of LIST) source.addEventListener(name, (message) => this.list(name, message));
    source.addEventListener("run", (message) => this.run(message));
    source.addEventListener("gone", (message) => this.gone(message));
  }

  private query(): string {
    const places = this.order.map((key) => this.positions.get(key) ?? START);
    const asked = new URLSearchParams(this.order.map((key) => ["run", key]));
    const after = [this.listed, ...places.map(({ seq, part }) => (part ? `${seq}.${part}` : `${seq}`))].join(",");
    if (after) asked.append("after", after);
    asked.append("lang", this.lang);
    return asked.toString();
  }

  private again(): void {
    this.listed = "";
    // The stream says nothing of why: a login may have ended.
    if (queryClient.getQueryData<Info>(["info"])?.auth.mode !== "local") void info().catch(() => undefined);
    this.openIn(this.wait);
    this.wait = Math.min(LONGEST_WAIT_MS, this.wait * 2);
  }

  private look(): void {
    const now = Date.now();
    if (now - this.looked > SLEEP_MS) this.open();
    this.looked = now;
  }

  private list(name: ListFrame["name"], message: MessageEvent<string>): void {
    this.listed = message.lastEventId.split(",")[0] ?? "";
    this.tell({ kind: "list", name, data: JSON.parse(message.data) } as Frame);
  }

  private run(message: MessageEvent<string>): void {
    const { thread_id, run_id, event } = parseExact(message.data) as unknown as RunFrame;
    const key = keyOf(thread_id, run_id);
    const place = message.lastEventId.split(",")[this.order.indexOf(key) + 1];
    const position = isInterrupted(event) || place === undefined ? null : positionOf(place);
    const after = this.positions.get(key) ?? START;
    if (position !== null) this.read(key, after, position);
    const halt = isHalt(event);
    if (halt) this.drop(key, position);
    this.tell({ kind: "run", key, position, after, event, halt });
  }

  /** A tab takes what comes if it has read as far as the connection had. One that has not stays where it stands. */
  private read(key: string, after: Position, position: Position): void {
    this.positions.set(key, position);
    for (const runs of this.wants.values()) {
      const known = runs[key];
      if (known !== undefined && !isBehind(known, after) && isBehind(known, position)) runs[key] = position;
    }
  }

  private gone(message: MessageEvent<string>): void {
    const { thread_id, run_id } = JSON.parse(message.data) as WatchedRun;
    this.drop(keyOf(thread_id, run_id));
    this.tell({ kind: "gone", key: keyOf(thread_id, run_id) });
  }

  /** Nothing more comes of a run until it goes on, and somebody wants it again. Tabs that stand behind `end` have yet to read it. */
  private drop(key: string, end: Position | null = null): void {
    this.positions.delete(key);
    for (const [tab, runs] of this.wants) {
      const { [key]: known, ...rest } = runs;
      if (known === undefined || end === null || !isBehind(known, end)) this.wants.set(tab, rest);
    }
  }
}
