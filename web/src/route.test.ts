import { expect, test } from "vitest";
import { parse, toConversation, toDefinition, toSettings } from "./route";

test.each(["t1", "a/b", "100%", "ä 中 ?#&", "%2F"])("the id %j goes through its address", (id) => {
  const address = new URL(toConversation(id, "e/1"), "http://localhost");
  expect(parse(address.pathname, address.search)).toEqual({ page: "conversation", id, at: "e/1" });
});

test.each(["clerk", "a/b", "100%", "研究员 ?#&", "%2F", "new"])("the definition %j goes through its address", (name) => {
  const address = new URL(toDefinition("agents", name), "http://localhost");
  expect(parse(address.pathname, address.search)).toEqual({ page: "settings", section: "agents", name });
});

test("a new definition has an address of its own", () => {
  const address = new URL(toDefinition("tools"), "http://localhost");
  expect(parse(address.pathname, address.search)).toEqual({ page: "settings", section: "tools", name: "" });
  expect(parse("/settings/usage/x")).toEqual({ page: "unknown" });
});

test("what is no page is unknown", () => {
  expect(parse("/")).toEqual({ page: "new" });
  expect(parse("/c/")).toEqual({ page: "unknown" });
  expect(parse("/settings")).toEqual({ page: "settings", section: "appearance" });
  expect(parse(toSettings("usage"))).toEqual({ page: "settings", section: "usage" });
  expect(parse("/settings/nothing")).toEqual({ page: "unknown" });
  expect(parse("/c/%E0%A4%A")).toEqual({ page: "conversation", id: "%E0%A4%A", at: null });
});
