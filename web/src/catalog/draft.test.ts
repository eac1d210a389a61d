import { expect, test } from "vitest";
import { at, put, wrongAt } from "./draft";

const agent = { system_prompt: "Hi", config: { model: "demo", max_steps: 8 } };

test("a field is set and taken away, and the others stay", () => {
  expect(put(agent, "config.model", "x")).toEqual({ system_prompt: "Hi", config: { model: "x", max_steps: 8 } });
  expect(put(agent, "config.model", undefined)).toEqual({ system_prompt: "Hi", config: { max_steps: 8 } });
  expect(put({}, "schema.parameters", { type: "object" })).toEqual({ schema: { parameters: { type: "object" } } });
  expect(at(agent, "config.max_steps")).toBe(8);
  expect(agent.config.model).toBe("demo");
});

test("a problem of a part is one of its field", () => {
  const wrong = { "skills[0]": "there is no skill x.", "config.model": "too long.", config: "odd." };
  expect(wrongAt(wrong, "skills")).toBe("there is no skill x.");
  expect(wrongAt(wrong, "config", { alone: true })).toBe("odd.");
  expect(wrongAt(wrong, "config.mode")).toBeUndefined();
});
