import { expect, test } from "vitest";
import { keyOf } from "./keyForm";

const NOW = Date.parse("2030-01-01T00:00:00Z");

function form(values: Record<string, string | string[]>): FormData {
  const made = new FormData();
  for (const [name, value] of Object.entries(values)) [value].flat().forEach((each) => made.append(name, each));
  return made;
}

test("what a form leaves empty limits nothing", () => {
  const given = form({ name: " build ", days: "0", scope: "chat", models: " ", amount: "", parallel: "" });
  expect(keyOf(given, NOW)).toEqual({ name: "build", scopes: ["chat"] });
});

test("what a form says limits the key", () => {
  const given = form({
    name: "build",
    days: "30",
    scope: ["mcp", "read"],
    agents: ["analyst", "clerk"],
    models: "openai:*, demo",
    amount: "2.5",
    unit: "money",
    period: "week",
    requests_per_minute: "60",
    parallel: "2",
  });
  expect(keyOf(given, NOW)).toEqual({
    name: "build",
    scopes: ["read", "mcp"],
    agents: ["analyst", "clerk"],
    models: ["openai:*", "demo"],
    budget: { amount: 2.5, unit: "money", period: "week" },
    requests_per_minute: 60,
    parallel: 2,
    expires_at: "2030-01-31T00:00:00.000Z",
  });
});

test("a budget of nothing is one", () => {
  expect(keyOf(form({ name: "x", amount: "0", unit: "tokens", period: "day" }), NOW).budget).toEqual({
    amount: 0,
    unit: "tokens",
    period: "day",
  });
});
