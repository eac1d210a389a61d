// Tabs of one browser, over one connection: each hears every event of a run once, in order, whenever it joins.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StreamEvent } from "./events";
import { Live } from "./live";
import { START, positionOf } from "./reducer";

type Listener = (message: { data: string; lastEventId: string }) => void;

/** The server's end of a connection. It is the newest one. */
class Connection {
  static last: Connection;
  /** After these events the run waits, or has ended. */
  static halts = new Set([9]);
  static readonly CLOSED = 2;
  readonly readyState = 1;
  private readonly listeners = new Map<string, Listener>();
  closed = false;

  readonly asked: URLSearchParams;
  constructor(url: string) {
    this.asked = new URL(url, "http://server").searchParams;
    Connection.last = this;
  }
  addEventListener = (name: string, listener: Listener) => void this.listeners.set(name, listener);
  close = () => void (this.closed = true);

  /** Tells of events `from` to `to` of the run t/r. */
  tell(from: number, to: number) {
    for (let seq = from; seq <= to && !this.closed; seq++) {
      const event = { type: Connection.halts.has(seq) ? "RUN_FINISHED" : "CUSTOM", name: String(seq) };
      this.listeners.get("run")?.({
        data: JSON.stringify({ thread_id: "t", run_id: "r", event }),
        lastEventId: `x,${seq}`,
      });
    }
  }
  /** Tells all that was asked for, up to an event. */
  tellAll(to: number) {
    const after = this.asked.get("after")?.split(",")[1] ?? "0";
    this.tell(positionOf(after).seq + 1, to);
  }
}

/** Tabs hear each other at once. */
class Channel {
  static all: Channel[] = [];
  private listener: Listener | null = null;
  constructor() {
    Channel.all.push(this);
  }
  addEventListener = (_: string, listener: Listener) => void (this.listener = listener);
  postMessage = (data: unknown) => {
    for (const each of Channel.all) if (each !== this) each.listener?.(structuredClone({ data }) as never);
  };
}

beforeEach(() => {
  vi.useFakeTimers();
  Channel.all = [];
  Connection.halts = new Set([9]);
  let isHeld = false;
  const request = (_: string, lead: () => void) => {
    if (!isHeld) lead();
    isHeld = true;
    return new Promise(() => undefined);
  };
  vi.stubGlobal("navigator", { locks: { request } });
  vi.stubGlobal("window", { addEventListener: () => undefined });
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => setTimeout(draw, 16));
  vi.stubGlobal("cancelAnimationFrame", clearTimeout);
  vi.stubGlobal("EventSource", Connection);
  vi.stubGlobal("BroadcastChannel", Channel);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const nameOf = ({ event }: { event: StreamEvent }): string => ("name" in event ? event.name : null) ?? "";

/** A tab that watches the run: what it hears. */
function watching(tab: Live): string[] {
  const heard: string[] = [];
  tab.watch("t", "r", START, (events) => heard.push(...(events ?? []).map(nameOf)));
  return heard;
}
const watchingOther = (tab: Live) => tab.watch("t", "other", START, () => undefined);
const upTo = (last: number) => Array.from({ length: last }, (_, at) => String(at + 1));

test.each([0, 1, 4, 8, 9])(
  "a tab that joins hears all, if %i more events come before the connection is opened again",
  (more) => {
    const leads = watching(new Live());
    vi.runOnlyPendingTimers();
    Connection.last.tell(1, 3);
    const old = Connection.last;
    const follows = watching(new Live());
    old.tell(4, Math.max(3, more));
    vi.advanceTimersByTime(100);
    if (Connection.last !== old) Connection.last.tellAll(9);
    vi.advanceTimersByTime(100);
    expect(follows).toEqual(upTo(9));
    expect(leads).toEqual(upTo(9));
  },
);

test.each([4, 5, 8])("a run that waited and went on is heard to its end, if %i events come at once", (atOnce) => {
  Connection.halts.add(4);
  const tab = new Live();
  const heard = watching(tab);
  vi.runOnlyPendingTimers();
  Connection.last.tell(1, atOnce);
  vi.advanceTimersByTime(100);
  // Its history says that it goes on.
  if (atOnce === 4) tab.watch("t", "r", { seq: 4, part: 0 }, (events) => heard.push(...(events ?? []).map(nameOf)));
  vi.advanceTimersByTime(100);
  if (atOnce === 4) Connection.last.tellAll(9);
  else Connection.last.tell(atOnce + 1, 9);
  vi.advanceTimersByTime(100);
  expect(heard).toEqual(upTo(9));
});

test("a connection that is opened again asks for a run that waited and went on", () => {
  Connection.halts.add(4);
  const heard = watching(new Live());
  vi.runOnlyPendingTimers();
  Connection.last.tell(1, 6);
  vi.advanceTimersByTime(100);
  watchingOther(new Live());
  vi.advanceTimersByTime(100);
  expect(Connection.last.asked.getAll("run")).toEqual(["t/r", "t/other"]);
  Connection.last.tellAll(9);
  vi.advanceTimersByTime(100);
  expect(heard).toEqual(upTo(9));
});

test("a tab that missed events asks for them, though the connection is past them", () => {
  const leads = watching(new Live());
  const tab = new Live();
  const follows = watching(tab);
  vi.advanceTimersByTime(100);
  Connection.last.tell(1, 2);
  const channel = Channel.all.pop();
  Connection.last.tell(3, 4);
  if (channel) Channel.all.push(channel);
  const old = Connection.last;
  old.tell(5, 6);
  vi.advanceTimersByTime(100);
  expect(Connection.last).not.toBe(old);
  Connection.last.tellAll(9);
  vi.advanceTimersByTime(100);
  expect(follows).toEqual(upTo(9));
  expect(leads).toEqual(upTo(9));
});

test("whatever the list's events are called, they are heard", () => {
  const names: string[] = [];
  new Live().onList(({ name }) => names.push(name));
  for (const name of ["conversations", "conversation", "deleted", "archived", "approvals"]) {
    Connection.last["listeners"].get(name)?.({ data: "{}", lastEventId: "x" });
  }
  vi.advanceTimersByTime(100);
  expect(names).toEqual(["conversations", "conversation", "deleted", "archived", "approvals"]);
});
