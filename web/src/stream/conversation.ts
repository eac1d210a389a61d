// A conversation that is open: the history as far as it is loaded, and the runs that are heard.

import { Problem } from "../api/problem";
import type { ConversationView } from "../api/types";
import type { ListFrame, StreamEvent } from "./events";
import { conversationOf } from "./history";
import type { Live } from "./live";
import { further, isAsListed, joined, prepended, turnOf, withHeard } from "./merge";
import { START, emptyRun, reduce } from "./reducer";
import * as requests from "./requests";
import { mayAsk } from "./steps";
import type { ConversationData, Position, Run, Step, Turn } from "./types";

/** `missing`: there is no such conversation (any more). */
export type Load = "loading" | "ready" | "missing" | "failed";

export interface ConversationState {
  load: Load;
  error: unknown;
  /** Null until the history has come. */
  data: ConversationData | null;
  turns: readonly Turn[];
  run: Run | null;
  /** The run that was begun in this tab last. */
  begun: string | null;
  loadsOlder: boolean;
}

type Told = readonly { event: StreamEvent; position: Position | null }[] | null;

/** A call that seems to ask an agent, of which it is not known in which conversation. */
const isOpen = (step: Step): boolean => mayAsk(step) && step.status === "running" && !step.asked;

const PAGE = 100;
const LONGEST_LOOK_MS = 8000;

export class Conversation {
  private state: ConversationState = {
    load: "loading",
    error: null,
    data: null,
    turns: [],
    run: null,
    begun: null,
    loadsOlder: false,
  };
  private readonly listeners = new Set<() => void>();
  private readonly heard = new Map<string, Run>();
  private readonly watches = new Map<string, () => void>();
  private asksAgain = false;
  /** An entry whose branch is shown, instead of the one that the conversation follows. */
  private aside: string | null = null;
  private loading: Promise<void> | null = null;
  private looks: { ms: number; timer: ReturnType<typeof setTimeout> } | null = null;
  private unlisten: (() => void) | null = null;
  private readonly live: Live;
  /** Runs that were begun in this tab. */
  private readonly begun = new Set<string>();
  readonly threadId: string;

  constructor(threadId: string, live: Live) {
    this.threadId = threadId;
    this.live = live;
  }

  readonly get = (): ConversationState => this.state;

  /** It is kept up to date while somebody listens. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.open();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.close();
    };
  };

  private open(): void {
    this.unlisten = this.live.onList((frame) => this.hearList(frame));
    void this.refresh();
  }

  private close(): void {
    this.unlisten?.();
    this.watches.forEach((unwatch) => unwatch());
    this.watches.clear();
    if (this.looks) clearTimeout(this.looks.timer);
    this.looks = null;
  }

  /** Asks what is stored now. An answer from before the last call of this is not shown. */
  refresh(): Promise<void> {
    this.asksAgain = true;
    this.loading ??= this.load().finally(() => (this.loading = null));
    return this.loading;
  }

  private async load(): Promise<void> {
    try {
      let data: ConversationData | null = null;
      while (this.asksAgain) {
        this.asksAgain = false;
        data = await this.newest();
      }
      if (data?.aside === false) this.aside = null;
      if (data !== null) this.show({ load: "ready", error: null, data });
      this.watchRunning();
    } catch (error) {
      const isMissing = error instanceof Problem && error.code === "thread_not_found";
      if (isMissing) this.show({ load: "missing", error, data: null });
      else this.show({ load: this.state.data === null ? "failed" : "ready", error });
    }
  }

  /** The newest page, joined with what is loaded: as many pages as lie between. */
  private async newest(): Promise<ConversationData> {
    const at = this.aside;
    let fresh = conversationOf(await requests.history(this.threadId, { at }));
    for (;;) {
      const data = joined(this.state.data, fresh);
      if (data !== null) return data;
      fresh = prepended(
        fresh,
        conversationOf(await requests.history(this.threadId, { limit: PAGE, before: fresh.before, at })),
      );
    }
  }

  /** Loads the page before what is loaded. */
  async older(): Promise<void> {
    const { data, loadsOlder } = this.state;
    if (data === null || data.before === null || loadsOlder) return;
    this.show({ loadsOlder: true });
    try {
      const earlier = conversationOf(
        await requests.history(this.threadId, { limit: PAGE, before: data.before, at: this.aside }),
      );
      // Loaded again meanwhile, it may begin elsewhere.
      const now = this.state.data;
      if (now !== null && now.before === data.before) this.show({ data: prepended(now, earlier) });
    } finally {
      this.show({ loadsOlder: false });
    }
  }

  /** Loads until a message is there, on its branch; the id of its turn, or null. */
  async find(entryId: string): Promise<string | null> {
    const { at } = await requests.history(this.threadId, { limit: 1, at: entryId });
    this.aside = at?.chosen === false ? entryId : null;
    await this.refresh();
    for (;;) {
      const found = turnOf(this.state.turns, at?.message ?? entryId);
      const before = this.state.data?.before ?? null;
      if (found !== undefined || before === null) return found?.id ?? null;
      await this.older();
      if (this.state.data?.before === before) return null;
    }
  }

  /** Shows the branch that the conversation follows again. */
  follow(): void {
    if (this.aside === null) return;
    this.aside = null;
    void this.refresh();
  }

  /** Remembers that a run was begun in this tab. */
  begins(runId: string): void {
    this.begun.add(runId);
    this.show({ begun: runId });
  }

  /** Whether a run was begun in this tab; true once. */
  tookBegun(runId: string): boolean {
    return this.begun.delete(runId);
  }

  /** Shows what a request has changed. */
  async did<T>(request: Promise<T>): Promise<T> {
    try {
      const answer = await request;
      const run = (answer as { run_id?: unknown } | undefined)?.run_id;
      if (typeof run === "string") this.begins(run);
      return answer;
    } finally {
      this.aside = null;
      await this.refresh();
    }
  }

  private show(change: Partial<ConversationState>): void {
    const next = { ...this.state, ...change };
    if (next.data === null) this.state = { ...next, turns: [], run: null };
    else {
      const run = next.data.run;
      this.state = {
        ...next,
        turns: withHeard(next.data.turns, this.heard),
        run: run && further(run, this.heard.get(run.id)),
      };
    }
    this.listeners.forEach((each) => each());
  }

  private hearList({ name, data }: ListFrame): void {
    if ((name === "deleted" || name === "archived") && data.id === this.threadId) void this.refresh();
    if (name === "conversation" && data.id === this.threadId) void this.refresh();
    // Somebody may have decided about some of its calls.
    if (name === "approvals" && this.state.run?.status === "waiting") void this.refresh();
    // After a break, anything may have happened.
    if (name === "conversations") void this.hearAll(data.conversations);
  }

  /** What the stream tells at its start is asked for again only where it is not what is shown. */
  private async hearAll(listed: readonly ConversationView[]): Promise<void> {
    await this.loading;
    const { data } = this.state;
    if (
      data === null ||
      !isAsListed(
        data,
        listed.find((each) => each.id === this.threadId),
      )
    )
      await this.refresh();
  }

  /** Hears the runs that are under way. One that waited, or was interrupted, is heard again when it goes on. */
  private watchRunning(): void {
    if (this.listeners.size === 0) return;
    const { data } = this.state;
    const runs = [...(data?.turns ?? []).map((turn) => turn.run), data?.run ?? null];
    for (const run of runs) {
      if (run === null || run.status !== "running" || this.watches.has(run.id)) continue;
      const from = this.heard.get(run.id)?.position ?? START;
      this.watches.set(
        run.id,
        this.live.watch(this.threadId, run.id, from, (events) => this.hear(run.id, events)),
      );
    }
  }

  private hear(runId: string, events: Told): void {
    if (events === null) {
      this.watches.delete(runId);
      void this.refresh();
      return;
    }
    let run = this.heard.get(runId) ?? emptyRun(runId);
    for (const { event, position } of events) run = reduce(run, event, position);
    this.heard.set(runId, run);
    this.show({});
    if (run.status === "running") this.lookBelow(run);
    else {
      this.watches.delete(runId);
      void this.refresh();
    }
  }

  /** In which conversation an agent works on a call, no event says: the history does, soon after. */
  private lookBelow(run: Run): void {
    const shown = this.state.run?.id === run.id ? this.state.run : run;
    if (this.looks || !shown.steps.some(isOpen)) return;
    const look = (ms: number) => {
      const timer = setTimeout(async () => {
        await this.refresh();
        this.looks = null;
        if (this.state.run?.status === "running" && this.state.run.steps.some(isOpen))
          look(Math.min(LONGEST_LOOK_MS, ms * 2));
      }, ms);
      this.looks = { ms, timer };
    };
    look(300);
  }
}
