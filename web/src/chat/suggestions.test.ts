import { expect, it } from "vitest";
import { suggestedIn, withoutLabel } from "./suggestions";

const REFUSAL =
  "I cannot answer this.\n\nTry for example:\n- How many payloads are there?\n- List the launches\n\n*Demo model: rule-based, no AI.*";

it("finds what the demo model suggests", () => {
  expect(suggestedIn(REFUSAL, "demo")).toEqual({
    text: "I cannot answer this.\n\n\n*Demo model: rule-based, no AI.*",
    questions: ["How many payloads are there?", "List the launches"],
  });
  expect(suggestedIn("No.\n\nTry for example:\n- ```How many w 27 texts are there?```", "demo").questions).toEqual([
    "How many w 27 texts are there?",
  ]);
  expect(suggestedIn("不会。\n\n可以试试：\n- 有哪些表？", "demo").questions).toEqual(["有哪些表？"]);
});

it("leaves out who says it", () => {
  expect(withoutLabel(REFUSAL, "demo")).toBe(REFUSAL.slice(0, REFUSAL.indexOf("\n\n*Demo")));
  expect(withoutLabel("40 [q1]。\n\n*演示模型：基于规则，没有使用 AI。*", "demo")).toBe("40 [q1]。");
  expect(withoutLabel(REFUSAL, "openai:gpt-5")).toBe(REFUSAL);
});

it("leaves other answers as they are", () => {
  expect(suggestedIn(REFUSAL, "openai:gpt-5")).toEqual({ text: REFUSAL, questions: [] });
  expect(suggestedIn("- one\n- two", "demo").questions).toEqual([]);
});
