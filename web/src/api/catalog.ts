// Agents, skills and tools: their definitions, and tools that are tried.

import type { CatalogPage } from "../route";
import { get, post, query, request } from "./client";
import type { JsonObject } from "./types";

export interface CatalogItem {
  id: string;
  name: string;
  version: number;
  is_active: boolean;
  is_builtin: boolean;
  by: string | null;
  updated_at: string | null;
  used_by: { kind: string; name: string }[];
  /** What a tool can do that only the command line may define. */
  power: "code" | "program" | "secret" | "private" | null;
  definition: JsonObject | null;
}

export interface CatalogList {
  items: CatalogItem[];
  changeable: boolean;
}

export interface Observation {
  ok: boolean;
  data?: JsonObject;
  error?: { type: string; message: string; params?: JsonObject };
}

interface Trial {
  args: JsonObject;
  source?: string;
  approve?: boolean;
  definition?: JsonObject;
}

const at = (kind: CatalogPage, name: string) => `/api/catalog/${kind}/${encodeURIComponent(name)}`;

export const definitions = (kind: CatalogPage, signal?: AbortSignal) => get<CatalogList>(`/api/catalog/${kind}`, signal);
export const define = (kind: CatalogPage, name: string, definition: JsonObject) =>
  request<{ action: string; item: CatalogItem }>("PUT", at(kind, name), { body: { definition } });
/** Also takes it out of those that use it; an agent's conversations and memories go with it. */
export const remove = (kind: CatalogPage, name: string) => request<void>("DELETE", at(kind, name) + query({ force: true }));
export const tryTool = (name: string, trial: Trial) => post<{ tool: string; observation: Observation }>(`${at("tools", name)}/run`, trial);
