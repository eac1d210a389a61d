// The server's routes.

import { sentence } from "./errors.js";

/** What the server answered instead: `code` for programs, the message for people. */
export class Problem extends Error {
  constructor(status, body) {
    super(sentence({ type: kindOf(status, body), message: body.detail, params: { ...body.params, status } }));
    this.status = status;
    this.code = body.code ?? "error";
    this.run = body.run ?? null;
  }
}

/** The code that tells what happened. What is no problem of ours, as of a proxy between, has only its status. */
function kindOf(status, body) {
  if (status === 413 && body.params === undefined) return "payload_too_large";
  if (body.errors !== undefined) return "invalid_request";
  return body.code === undefined || body.detail === body.title ? "unreadable" : body.code;
}

async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return new URLSearchParams(given).toString();
}

const at = (id, rest = "") => `/api/conversations/${encodeURIComponent(id)}${rest}`;

export const info = () => call("GET", "/api/info");
export const agents = () => call("GET", "/api/agents");
export const conversations = (cursor, q) => call("GET", `/api/conversations?${query({ limit: 30, cursor, q })}`);
export const rename = (id, label) => call("PATCH", at(id), { label });
export const remove = (id) => call("DELETE", at(id));
export const history = (id, { before = null, limit = 20 } = {}) => call("GET", `/api/chat/history?${query({ thread_id: id, limit, before })}`);
export const ask = (question) => call("POST", "/api/chat", { ...question, when_busy: "enqueue" });
export const unqueue = (id, question) => call("DELETE", at(id, `/queue/${encodeURIComponent(question)}`));
export const resume = (id) => call("POST", at(id, "/resume"), {});
export const decide = (id, decisions) => call("POST", at(id, "/approvals"), { decisions });
export const stop = (id, run) => call("POST", at(id, `/stop?${query({ run_id: run })}`));
export const step = (id, index) => call("GET", at(id, `/steps/${index}`));
export const chart = (id, index) => call("GET", at(id, `/steps/${index}/chart`));
