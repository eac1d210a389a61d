import { describe, expect, it } from "vitest";
import type { ConversationView } from "../api/types";
import { further, isAsListed, joined, prepended, withHeard } from "./merge";
import { emptyRun } from "./reducer";
import type { ConversationData, Run, Turn } from "./types";

const alone = (id: string) => ({ ids: [id], shown: 0 });
const turn = (id: string, text = id, run: Run | null = null): Turn => ({
  id,
  question: { id, text, at: 0, siblings: alone(id) },
  answers: null,
  run,
  said: [],
  steps: [],
});
const data = (ids: string[], before: string | null): ConversationData => ({
  threadId: "t",
  label: "",
  source: null,
  agent: null,
  parent: null,
  lastActiveAt: "",
  waitingBelow: [],
  turns: ids.map((id) => turn(id)),
  run: null,
  queue: [],
  tags: [],
  archivedAt: null,
  pinnedAt: null,
  aside: false,
  before,
});
const idsOf = (made: ConversationData | null) => made?.turns.map((each) => each.id);

describe("a fresh page", () => {
  it("goes behind the pages that are loaded", () => {
    const made = joined(data(["a", "b", "c"], "x"), data(["c", "d"], "y"));
    expect(idsOf(made)).toEqual(["a", "b", "c", "d"]);
    expect(made?.before).toBe("x");
  });

  it("takes the place of what followed on another branch", () => {
    expect(idsOf(joined(data(["a", "b", "c", "d"], null), data(["b", "c2"], "y")))).toEqual(["a", "b", "c2"]);
  });

  it("that begins on another branch needs the pages between", () => {
    const loaded = data(["a", "b", "c"], null);
    const fresh = data(["x", "y"], "b2");
    expect(joined(loaded, fresh)).toBeNull();
    expect(idsOf(joined(loaded, prepended(fresh, data(["a", "b2"], null))))).toEqual(["a", "b2", "x", "y"]);
  });

  it("is all there is where nothing of it is known up to the start", () => {
    expect(idsOf(joined(data(["a"], null), data(["b"], null)))).toEqual(["b"]);
  });

  it("with more than is loaded is whole", () => {
    const made = joined(data(["b"], "x"), data(["a", "b", "c"], "w"));
    expect([idsOf(made), made?.before]).toEqual([["a", "b", "c"], "w"]);
  });

  it("keeps the objects of turns that have not changed", () => {
    const loaded = data(["a", "b"], null);
    const fresh = { ...data(["a"], null), turns: [turn("a"), turn("b", "edited")] };
    const made = joined(loaded, fresh);
    expect(made?.turns[0]).toBe(loaded.turns[0]);
    expect(made?.turns[1]?.question?.text).toBe("edited");
  });
});

it("puts the page before in front, once", () => {
  const made = prepended(data(["c"], "x"), data(["a", "b", "c"], null));
  expect([idsOf(made), made.before]).toEqual([["a", "b", "c"], null]);
});

const at = (seq: number, run: Partial<Run> = {}): Run => ({ ...emptyRun("r"), position: { seq, part: 0 }, ...run });

describe("a run that is heard", () => {
  it("is shown where it is as far as the history, or further", () => {
    const [told, heard] = [at(3), at(4)];
    expect(further(told, heard)).toBe(heard);
    expect(further(at(5), heard)).not.toBe(heard);
    expect(withHeard([turn("a", "", told)], new Map([["r", heard]]))[0]?.run).toBe(heard);
  });

  it("is interrupted when the history says so, until more is heard", () => {
    const told = at(3, { status: "interrupted" });
    expect(further(told, at(3))).toBe(told);
    expect(further(told, at(4)).status).toBe("running");
  });
});

describe("what the stream's list tells of a conversation", () => {
  const shown = { ...data(["a"], null), lastActiveAt: "2026-01-02" };
  const listed = {
    id: "t",
    label: "",
    last_active_at: "2026-01-02",
    status: null,
    queued: 0,
    waiting_below: [],
  } as unknown as ConversationView;

  it("is what is shown", () => expect(isAsListed(shown, listed)).toBe(true));

  it("may be other questions, as many as wait", () => {
    const waits = { ...shown, queue: [{ id: "x", question: "", position: 1 }] };
    expect(isAsListed(waits, { ...listed, queued: 1 })).toBe(false);
  });

  it.each([
    ["nothing", undefined],
    ["a later change", { ...listed, last_active_at: "2026-01-03" }],
    ["a run", { ...listed, status: "running" }],
    ["a question that waits", { ...listed, queued: 1 }],
    ["another name", { ...listed, label: "x" }],
    ["an agent that waits below", { ...listed, waiting_below: ["u"] }],
  ])("is news: %s", (_, told) => expect(isAsListed(shown, told as ConversationView | undefined)).toBe(false));
});
