import type { GrantBody, GrantView } from "../api/types";

type Kind = GrantBody["kind"];

/** What can be changed, so that the right to do so can be granted. */
const CHANGED: ReadonlySet<Kind> = new Set<Kind>(["agent", "skill", "tool", "source"]);

/** What may be granted of a kind. */
export const waysOf = (kind: Kind): readonly GrantView["may"][] => (CHANGED.has(kind) ? ["use", "edit"] : ["use"]);

/** Who gets a right: `everyone`, or a group or a user by id. */
export type To = Pick<GrantView, "to_kind" | "to_id">;

export const textOf = ({ to_kind, to_id }: To) => `${to_kind}/${to_id}`;

export function toOf(text: string): To {
  const [kind = "", ...rest] = text.split("/");
  const to_kind = kind === "user" || kind === "group" ? kind : "everyone";
  return { to_kind, to_id: to_kind === "everyone" ? "" : rest.join("/") };
}

const ORDER = ["everyone", "group", "user"];

/** What was granted of one thing, which has an id or a name: to everyone first, then to groups and users by name. */
export const grantsOf = (grants: readonly GrantView[], item: string): GrantView[] =>
  grants
    .filter((each) => each.item === item || each.item_name === item)
    .toSorted(
      (a, b) => ORDER.indexOf(a.to_kind) - ORDER.indexOf(b.to_kind) || (a.to_name ?? "").localeCompare(b.to_name ?? ""),
    );
