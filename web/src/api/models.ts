// Models, and the providers and servers that are connected.

import { current } from "../i18n";
import { get, post, request } from "./client";

export interface ModelProvider {
  provider: string;
  kind: "vendor" | "local" | "own";
  name: string;
  chinese_name: string;
  addresses: string[];
  connected: boolean;
  url: string | null;
  key: "stored" | "environment" | null;
  set_at: string | null;
  problem: "refused" | "unreachable" | "unreadable" | null;
}

export interface ModelList {
  default: string;
  models: { name: string; origin: "configured" | "demo" | "local" | "provider"; provider: string | null; protocol: "native" | "json" | "sql" | null }[];
  providers: ModelProvider[];
  servers: { kind: string; url: string }[];
  keys_allowed: boolean;
}

export interface KeyChecked {
  provider: string;
  url: string;
  models: string[] | null;
}

export interface ModelChecked {
  model: string;
  window: number;
  origin: "server" | "known" | "measured" | "setting" | "assumed";
}

/** A key and an address to connect; what is left out is as it was. */
export type ConnectionGiven = { key?: string; url?: string };

const keyPath = (provider: string) => `/api/models/keys/${encodeURIComponent(provider)}`;

export const models = (signal?: AbortSignal) => get<ModelList>("/api/models", signal);
/** Asks a provider or server for its models; nothing is stored. */
export const checkConnection = (provider: string, given: ConnectionGiven) => post<KeyChecked>(`${keyPath(provider)}/check`, given);
/** Stores what was checked before. */
export const storeConnection = (provider: string, given: ConnectionGiven) => request<void>("PUT", keyPath(provider), { body: { ...given, check: false } });
export const deleteConnection = (provider: string) => request<void>("DELETE", keyPath(provider));
/** Asks a model a tiny question, and its server for the window. */
export const checkModel = (model: string) => post<ModelChecked>("/api/models/check", { model });

/** What a provider calls itself in the page's language. */
export const nameOf = ({ name, chinese_name }: ModelProvider) => (current() === "zh" ? chinese_name : name);

export function providerName(list: ModelList, id: string | null): string {
  const row = list.providers.find(({ provider }) => provider === id);
  return row ? nameOf(row) : (id ?? "");
}
