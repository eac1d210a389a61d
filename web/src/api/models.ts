// Models, and the providers and servers that are connected.

import { current } from "../i18n";
import { get, post, request } from "./client";
import type { KeyBody, KeyChecked, ModelChecked, ModelList, ModelProvider } from "./types";

/** A key and an address to connect; what is left out is as it was. */
export type ConnectionGiven = Omit<KeyBody, "check">;

const keyPath = (provider: string) => `/api/models/keys/${encodeURIComponent(provider)}`;

export const models = (signal?: AbortSignal) => get<ModelList>("/api/models", signal);
/** Asks a provider or server for its models; nothing is stored. */
export const checkConnection = (provider: string, given: ConnectionGiven) =>
  post<KeyChecked>(`${keyPath(provider)}/check`, given);
/** Stores what was checked before. */
export const storeConnection = (provider: string, given: ConnectionGiven) =>
  request<void>("PUT", keyPath(provider), { body: { ...given, check: false } });
export const deleteConnection = (provider: string) => request<void>("DELETE", keyPath(provider));
/** Asks a model a tiny question, and its server for the window. */
export const checkModel = (model: string) => post<ModelChecked>("/api/models/check", { model });

/** What a provider calls itself in the page's language. */
export const nameOf = ({ name, chinese_name }: ModelProvider) => (current() === "zh" ? chinese_name : name);

export function providerName(list: ModelList, id: string | null): string {
  const row = list.providers.find(({ provider }) => provider === id);
  return row ? nameOf(row) : (id ?? "");
}
