import { expect, test } from "vitest";
import type { ProjectView } from "../api/types";
import { changesOf, draftOf, offered } from "./draft";

const project: ProjectView = {
  id: "p1",
  name: "Sales",
  may: "manage",
  conversations: 0,
  updated_at: "2026-01-01T00:00:00Z",
  created_at: "2026-01-01T00:00:00Z",
  instructions: "In euros.",
  sources: ["shop", "demo"],
  members: [],
};
const draft = draftOf(project);

test("only what differs is saved", () => {
  expect(changesOf(project, draft)).toBeNull();
  expect(changesOf(project, { ...draft, name: "  Sales " })).toBeNull();
  expect(changesOf(project, { ...draft, name: "Costs" })).toEqual({ name: "Costs" });
  expect(changesOf(project, { ...draft, instructions: "" })).toEqual({ instructions: "" });
});

test("the order of sources is no change, and the last one can be taken out", () => {
  expect(changesOf(project, { ...draft, sources: ["demo", "shop"] })).toBeNull();
  expect(changesOf(project, { ...draft, sources: ["shop"] })).toEqual({ sources: ["shop"] });
  expect(changesOf(project, { ...draft, sources: [] })).toEqual({ sources: [] });
});

test("a project without a name is not saved", () => {
  expect(changesOf(project, { ...draft, name: " ", instructions: "New" })).toBeNull();
});

test("the sources of the project are offered first, each once", () => {
  expect(offered(project, ["demo", "files"])).toEqual(["shop", "demo", "files"]);
});
