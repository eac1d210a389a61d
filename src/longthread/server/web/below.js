// Conversations that agents have with each other: from a call to the one below, from below back, and to where one waits.

import { el } from "./dom.js";
import { t } from "./i18n.js";

const OUTCOMES = new Set(["agent_failed", "agent_paused", "agent_waits"]);

export const pathOf = (id) => `#/c/${encodeURIComponent(id)}`;

/** Whether a call asks an agent, as far as its name says so: what answers it, the server knows. */
export const mayAsk = (step) => step.action.startsWith("ask_");

/** The conversation that answers a call: `thread_id`, `agent`, `status`. Null where the call asks no agent. */
export function answerOf(step) {
  if (step.asked) return step.asked;
  const { data, error } = step.observation ?? {};
  if (!mayAsk(step)) return null;
  if (typeof data?.thread_id === "string" && data.agent) return { thread_id: data.thread_id, agent: data.agent, status: "finished" };
  if (!OUTCOMES.has(error?.type) || !error.thread_id) return null;
  return { thread_id: error.thread_id, agent: step.action.slice(4), status: error.type === "agent_waits" ? "waiting" : "paused" };
}

/** The way to the conversation that answers a call. */
export function linkBelow(asked) {
  const waits = asked.status === "waiting";
  return el("a.below-link", { href: pathOf(asked.thread_id) }, el("span", { "aria-hidden": "true" }, "↳ "),
    t("toAgent", { agent: asked.agent ?? "" }), waits ? el("span.waits", {}, t("waits")) : null);
}

/** What waits below a conversation, with the way there. `waiting`: `id`, `label` and `agent` of each. */
export function waitingCards(waiting) {
  return waiting.map(({ id, label, agent }) =>
    el("div.card.calm", { role: "status" },
      el("div", {}, el("strong", {}, t("agentWaits", { agent })), el("p", { dir: "auto" }, label)),
      el("a.go", { href: pathOf(id) }, t("decideThere"))));
}
