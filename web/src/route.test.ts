import { expect, test } from "vitest";
import { parse, toConversation, toDefinition, toNewIn, toProject, toProjects, toSettings, toTerms } from "./route";

test.each(["t1", "a/b", "100%", "ä 中 ?#&", "%2F"])("the id %j goes through its address", (id) => {
  const address = new URL(toConversation(id, "e/1"), "http://localhost");
  expect(parse(address.pathname, address.search)).toEqual({ page: "conversation", id, at: "e/1" });
});

test.each(["clerk", "a/b", "100%", "研究员 ?#&", "%2F", "new"])(
  "the definition %j goes through its address",
  (name) => {
    const address = new URL(toDefinition("agents", name), "http://localhost");
    expect(parse(address.pathname, address.search)).toEqual({ page: "settings", section: "agents", name });
  },
);

test("a new definition has an address of its own", () => {
  const address = new URL(toDefinition("tools"), "http://localhost");
  expect(parse(address.pathname, address.search)).toEqual({ page: "settings", section: "tools", name: "" });
  expect(parse("/settings/usage/x")).toEqual({ page: "unknown" });
});

test.each(["p1", "a/b", "100%", "项目 ?#&", "%2F"])("the project %j goes through its addresses", (id) => {
  const address = new URL(toProject(id), "http://localhost");
  expect(parse(address.pathname, address.search)).toEqual({ page: "projects", id });
  const begun = new URL(toNewIn(id), "http://localhost");
  expect(parse(begun.pathname, begun.search)).toEqual({ page: "new", project: id });
  expect(parse(toProjects)).toEqual({ page: "projects", id: null });
});

test("what is no page is unknown", () => {
  expect(parse("/")).toEqual({ page: "new" });
  expect(parse("/c/")).toEqual({ page: "unknown" });
  expect(parse("/settings")).toEqual({ page: "settings", section: "models" });
  expect(parse("/settings/nothing")).toEqual({ page: "unknown" });
  expect(parse("/settings/constructor")).toEqual({ page: "unknown" });
  expect(parse("/c/%E0%A4%A")).toEqual({ page: "conversation", id: "%E0%A4%A", at: null });
});

test("what had a page of its own is found on the one that has it now", () => {
  expect(parse("/settings/sources")).toEqual({ page: "settings", section: "data", part: "sources" });
  expect(parse("/settings/appearance")).toEqual({ page: "settings", section: "you", part: "appearance" });
  expect(parse(toSettings("usage"))).toEqual({ page: "settings", section: "you", part: "usage" });
});

test.each(["demo", "postgresql://reader@host/shop", "a/b", "销售 ?#&"])(
  "the terms of %j go through their address",
  (source) => {
    const address = new URL(toTerms(source), "http://localhost");
    expect(parse(address.pathname, address.search)).toEqual({ page: "settings", section: "terms", name: source });
  },
);
