// Requests of the server's routes. Answers have the types of ./types.

import { LOGIN, leaveForLogin } from "../login/away";
import { parseExact } from "./exact";
import { Offline, Problem } from "./problem";
import type { JsonObject } from "./types";

export interface Options {
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** The answer's body; undefined where it has none. Raises `Problem` and `Offline`. */
export async function request<T>(method: string, path: string, { body, signal, headers }: Options = {}): Promise<T> {
  const init: RequestInit = { method, headers: { ...headers } };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json", ...headers };
  }
  if (signal) init.signal = signal;
  const response = await fetch(path, init).catch((error: unknown) => {
    throw error instanceof TypeError ? new Offline(error.message) : error;
  });
  if (response.status === 204) return undefined as T;
  const answer: unknown = await response
    .text()
    .then(parseExact)
    .catch(() => ({}));
  if (!response.ok) return refuse(response.status, answer as JsonObject);
  return answer as T;
}

/** Raises what the server answered instead. Where nobody is logged in any more, the page goes to the login. */
export async function refuse(status: number, body: JsonObject): Promise<never> {
  const problem = new Problem(status, body);
  if (problem.code === "login_needed" && location.pathname !== LOGIN) return leaveForLogin();
  throw problem;
}

export const get = <T>(path: string, signal?: AbortSignal) => request<T>("GET", path, signal ? { signal } : {});
export const post = <T>(path: string, body: unknown = {}, headers?: Record<string, string>) =>
  request<T>("POST", path, headers ? { body, headers } : { body });

/** `?a=1&b=2` of the values that are given. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

/** A path of a conversation: `at("a/b", "/usage")`. */
export const at = (id: string, rest = "") => `/api/conversations/${encodeURIComponent(id)}${rest}`;
