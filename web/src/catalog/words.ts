import type { AgentInfo, CatalogItem, JsonObject, LocalText } from "../api/types";
import { current } from "../i18n";
import { textAt } from "./draft";

/** The type of a tool's definition. */
export const typeName = (definition: JsonObject) => textAt(definition, "type") || "builtin";

export const inLanguage = (text: LocalText) => text[current()];

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
