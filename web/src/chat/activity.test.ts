import { expect, test } from "vitest";
import type { StreamEvent } from "../stream/events";
import finished from "../stream/recorded/finished.json";
import { emptyRun, positionOf, reduce } from "../stream/reducer";
import { begun } from "../stream/steps";
import type { Run, Step } from "../stream/types";
import { activeSince, activityOf, doing } from "./activity";

const t = ((id: string, values: object = {}) => [id, ...Object.values(values)].join(" ")) as Parameters<
  typeof activityOf
>[1];

test("a run tells what it does now from its events, and since when", () => {
  let run: Run = emptyRun("r");
  const told = [activityOf(run, t)];
  for (const { id, event } of finished.events) {
    run = reduce(run, event as unknown as StreamEvent, positionOf(id));
    const now = run.status === "running" ? activityOf(run, t) : "";
    if (now && now !== told.at(-1)) told.push(now);
    if (now) expect(activeSince(run), now).toBeLessThanOrEqual(event.timestamp);
  }
  expect(told).toEqual([
    "now.begins",
    "now.thinks",
    "now.writing",
    "now.thinks",
    "now.uses ",
    "now.listTables",
    "now.writesQuery",
    "now.writing",
    "now.writesQuery",
    "now.uses ",
    "now.runSql",
    "now.readsRows 1",
    "now.uses ",
    "now.runSql",
    "now.corrects",
    "now.writing",
  ]);
});

const step = (action: string, more: Partial<Step> = {}): Step => ({ ...begun("c", action), ...more });

test.each<[Step, string]>([
  [step("describe_table", { args: { table: "orders" } }), "now.describeTable orders"],
  [step("sample_rows", { args: { table: "orders" } }), "now.sampleRows orders"],
  [step("query_metric", { args: { metrics: ["revenue", "orders"] } }), "now.metrics revenue, orders"],
  [step("chart"), "now.draws"],
  [step("ask_clerk", { asked: { threadId: "t", agent: "clerk", status: "running" } }), "now.asks clerk"],
  [step("send_mail"), "now.uses send_mail"],
])("a step that is under way: %j", (one, said) => {
  expect(doing(one, t)).toBe(said);
});

test.each<[Partial<Step>, string]>([
  [{ action: "run_sql", status: "ok", rows: [] }, "now.readsRows 0"],
  [{ action: "query_metric", status: "failed" }, "now.corrects"],
  [{ action: "send_mail", status: "failed" }, "now.decides"],
  [{ action: "send_mail", status: "ok" }, "now.readsResult send_mail"],
  [{ action: "chart", status: "ok", chart: { data: { name: "q1" } } }, "now.decides"],
  [
    { action: "ask_clerk", status: "ok", asked: { threadId: "t", agent: "clerk", status: "finished" } },
    "now.readsAnswer clerk",
  ],
])("after a step: %j", (ended, said) => {
  const run: Run = {
    ...emptyRun("r"),
    startedAt: 1,
    steps: [step("list_tables"), step("", { finishedAt: 5, ...ended })].map((each, at) =>
      at ? each : { ...each, status: "ok" },
    ),
  };
  expect(activityOf(run, t)).toBe(said);
  expect(activeSince(run)).toBe(5);
});
