// Agents, skills and tools: their definitions, and tools that are tried.

import type { CatalogPage } from "../route";
import { get, post, query, request } from "./client";
import type { CatalogChange, CatalogList, JsonObject, ToolTrial, TrialBody } from "./types";

const at = (kind: CatalogPage, name: string) => `/api/catalog/${kind}/${encodeURIComponent(name)}`;

export const definitions = (kind: CatalogPage, signal?: AbortSignal) =>
  get<CatalogList>(`/api/catalog/${kind}`, signal);
export const define = (kind: CatalogPage, name: string, definition: JsonObject) =>
  request<CatalogChange>("PUT", at(kind, name), { body: { definition } });
/** Also takes it out of those that use it; an agent's conversations and memories go with it. */
export const remove = (kind: CatalogPage, name: string) =>
  request<void>("DELETE", at(kind, name) + query({ force: true }));
export const tryTool = (name: string, trial: TrialBody) => post<ToolTrial>(`${at("tools", name)}/run`, trial);
