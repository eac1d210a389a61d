import type { AgentInfo, CatalogItem } from "../api/types";
import { textAt } from "./draft";

/** The kind of a tool's definition. */
export type ToolType = "query" | "api" | "mcp" | "code" | "builtin";

export const typeOf = ({ definition }: CatalogItem) => (textAt(definition ?? {}, "type") || "builtin") as ToolType;

export const usersOf = (item: CatalogItem) => item.used_by.map((each) => each.name).join(", ");

/** An agent as the page tells others whom they can ask. */
export const asAgent = (item: CatalogItem): AgentInfo => ({
  id: item.id,
  name: item.name,
  description: textAt(item.definition ?? {}, "description"),
  asks_source: true,
  source: null,
  model: null,
});
