import { expect, test } from "vitest";
import type { GrantView } from "../api/types";
import { grantsOf, textOf, toOf, waysOf } from "./grantItems";

const made = (about: Partial<GrantView>): GrantView => ({
  kind: "agent",
  item: "a1",
  item_name: "clerk",
  to_kind: "user",
  to_id: "u1",
  to_name: "Bob",
  may: "use",
  granted_by: "default",
  granted_at: null,
  ...about,
});

test("who gets a right goes through the value of an option", () => {
  for (const to of [
    { to_kind: "everyone", to_id: "" },
    { to_kind: "group", to_id: "g/1" },
    { to_kind: "user", to_id: "u1" },
  ] as const)
    expect(toOf(textOf(to))).toEqual(to);
});

test("what was granted of a thing stands in an order, by its id or its name", () => {
  const grants = [
    made({ to_name: "Zoe" }),
    made({ to_name: "Ada" }),
    made({ to_kind: "group", to_name: "finance" }),
    made({ to_kind: "everyone", to_name: null }),
    made({ item: "a2", item_name: "other" }),
  ];
  const names = grantsOf(grants, "a1").map(({ to_name }) => to_name);
  expect(names).toEqual([null, "finance", "Ada", "Zoe"]);
  expect(grantsOf(grants, "clerk")).toHaveLength(4);
  expect(grantsOf(grants, "nothing")).toEqual([]);
});

test("only what can be changed can be granted to be changed", () => {
  expect(waysOf("agent")).toEqual(["use", "edit"]);
  expect(waysOf("model")).toEqual(["use"]);
});
