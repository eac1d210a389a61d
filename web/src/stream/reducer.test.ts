import { readFileSync, readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseExact } from "../api/exact";
import type { History } from "../api/types";
import type { StreamEvent } from "./events";
import { conversationOf } from "./history";
import { emptyRun, positionOf, reduce } from "./reducer";
import type { Run } from "./types";

interface Recorded {
  events: { id: string | null; event: StreamEvent }[];
  history: History;
}

const FOLDER = new URL("./recorded/", import.meta.url);
const RECORDED = readdirSync(FOLDER).map((name) => ({
  name,
  ...(parseExact(readFileSync(new URL(name, FOLDER), "utf8")) as Recorded),
}));

function idOf(events: Recorded["events"]): string {
  const first = events[0]?.event;
  return first?.type === "RUN_STARTED" ? first.runId : "";
}

function folded(events: Recorded["events"], from: Run = emptyRun(idOf(events))): Run {
  return events.reduce((run, { id, event }) => reduce(run, event, id === null ? null : positionOf(id)), from);
}

/** A run without what only the history rounds: its times are those of the rows, not of the events. */
const untimed = (run: Run) => ({
  ...run,
  startedAt: null,
  endedAt: null,
  steps: run.steps.map((step) => ({ ...step, startedAt: null, finishedAt: null, asked: step.asked?.threadId })),
});

const frozen = (run: Run): Run =>
  Object.freeze({ ...run, steps: Object.freeze(run.steps.map((step) => Object.freeze(step))) as Run["steps"] });

/** The run after events that come one by one. */
const after = (...events: StreamEvent[]) =>
  events.reduce((run, event, place) => reduce(run, event, { seq: place + 1, part: 0 }), emptyRun("r"));

const begin = (messageId: string): StreamEvent => ({ type: "TEXT_MESSAGE_START", messageId });
const add = (messageId: string, delta: string): StreamEvent => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });
const start = (step: number, callId: string): StreamEvent => ({
  type: "STEP_STARTED",
  stepName: `${step}`,
  metadata: { longthread: { step, call_id: callId } },
});

describe.each(RECORDED)("the recorded stream $name", ({ events, history }) => {
  it("gives what the history shows", () => {
    const shown = conversationOf(history).run;
    if (shown === null) throw new Error("the history has no run");
    expect(untimed(folded(events))).toEqual(untimed(shown));
  });

  it("gives the same when it is cut anywhere and told again from any place before", () => {
    const whole = folded(events);
    for (let cut = 0; cut <= events.length; cut += 1) {
      const until = folded(events.slice(0, cut), emptyRun(idOf(events)));
      for (const from of [0, Math.floor(cut / 2), cut]) expect(folded(events.slice(from), until)).toEqual(whole);
    }
  });

  it("changes nothing that it was given", () => {
    let run = frozen(emptyRun(idOf(events)));
    for (const { id, event } of events) run = frozen(reduce(run, event, id === null ? null : positionOf(id)));
  });
});

describe("a run", () => {
  const withdrawn: StreamEvent = { type: "CUSTOM", name: "longthread.text_withdrawn", value: { message_id: "m" } };

  it("shows withdrawn text until something stands in its place", () => {
    const begun = [begin("m"), add("m", "I look."), withdrawn];
    expect(after(...begun).text).toEqual({ id: "m", text: "I look.", withdrawn: true });
    const thought = after(...begun, { type: "REASONING_MESSAGE_CONTENT", messageId: "m.thought", delta: "I look." });
    expect(thought).toMatchObject({ text: null, thought: "I look." });
    const again = after(...begun, begin("n"));
    expect(again.text).toEqual({ id: "n", text: "", withdrawn: false });
  });

  it("is interrupted while it runs, not after its end", () => {
    const gone: StreamEvent = { type: "CUSTOM", name: "longthread.interrupted", value: {} };
    expect(reduce(emptyRun("r"), gone, null).status).toBe("interrupted");
    const finished = after({
      type: "RUN_FINISHED",
      threadId: "t",
      runId: "r",
      result: { status: "finished", answer: "41" },
    });
    expect(reduce(finished, gone, null).status).toBe("finished");
  });

  it("goes on after it was interrupted", () => {
    const interrupted: Run = { ...emptyRun("r"), status: "interrupted" };
    expect(reduce(interrupted, add("m", "On."), { seq: 1, part: 0 }).status).toBe("running");
  });

  it("has a repeated call once, under its last number", () => {
    const run = after(
      start(1, "a"),
      { type: "TOOL_CALL_START", toolCallId: "a", toolCallName: "run_sql" },
      start(2, "b"),
      start(3, "a"),
    );
    expect(run.steps.map((step) => [step.index, step.callId, step.action])).toEqual([
      [2, "b", ""],
      [3, "a", "run_sql"],
    ]);
  });
});

it("keeps whole numbers beyond 2^53 exact", () => {
  expect(parseExact('{"a":[9007199254740993,-9007199254740993,1.5,12,"9007199254740993"]}')).toEqual({
    a: ["9007199254740993", "-9007199254740993", 1.5, 12, "9007199254740993"],
  });
});
