// A call that waits for a person: what it would do, and whether it is made as it is, with other arguments, or not at all.

import { el } from "./dom.js";
import { t } from "./i18n.js";

/** A text in which characters that do not show, or turn the direction of what stands beside them, are written as in JSON. */
export function visible(text) {
  const unseen = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(unseen, (found) => found.split("").map(escaped).join(""));
}

class NoObject extends Error {}

function objectOf(text) {
  const value = JSON.parse(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new NoObject();
  return value;
}

/** `decide(decision)` sends what was decided; what it throws is shown, and can be put right. */
export function approvalCard(call, decide) {
  const trouble = el("p.wrong", { role: "alert", hidden: true });
  const said = visible(JSON.stringify(call.args, null, 2));
  const args = el("pre", { tabindex: 0, "aria-label": t("arguments") }, said);
  const more = el("div.approval-more");
  const send = async (decision) => {
    trouble.hidden = true;
    node.inert = true;
    try {
      await decide(decision());
    } catch (error) {
      trouble.textContent = error instanceof SyntaxError ? t("noJson") : error instanceof NoObject ? t("noObject") : error.message;
      trouble.hidden = false;
    } finally {
      node.inert = false;
    }
  };
  const button = (kind, text, onclick) => el(`button.${kind}`, { type: "button", onclick }, text);
  const choices = el("div.choices");
  // While something is typed, nothing else can be chosen: that would leave it behind.
  const open = (field, choice) => {
    const from = document.activeElement;
    const close = () => {
      more.replaceChildren();
      trouble.hidden = true;
      choices.hidden = false;
      from?.focus();
    };
    choices.hidden = true;
    more.replaceChildren(field, el("div.choices", {}, choice, button("quiet", t("cancel"), close)));
    field.focus();
  };
  const edit = () => {
    const field = el("textarea", { rows: 4, spellcheck: false, "aria-label": t("arguments") });
    field.value = said;
    const made = () => ({ type: "edit", edited_action: { name: call.tool, args: objectOf(field.value) } });
    open(field, button("go", t("approveEdited"), () => send(made)));
  };
  const reject = () => {
    const field = el("input", { "aria-label": t("reason"), placeholder: t("reason"), maxlength: 2000 });
    const made = () => ({ type: "reject", ...(field.value.trim() ? { message: field.value.trim() } : {}) });
    field.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && send(made));
    open(field, button("danger", t("reject"), () => send(made)));
  };
  const node = el("div.card.calm.approval", { "data-call": call.id },
    el("div", {}, el("strong", {}, t("waiting", { tool: call.tool })), call.description ? el("p", { dir: "auto" }, visible(call.description)) : null, args),
    choices, more, trouble);
  choices.append(
    button("go", t("approve"), () => send(() => ({ type: "approve" }))),
    button("quiet", t("edit"), edit),
    button("quiet", t("reject"), reject));
  return node;
}

/** Who decided, as words: nothing where no user is named, for whom “by default” would read as if nobody had. */
const byUser = (name) => (name && name !== "default" ? t("byUser", { user: visible(name) }) : "");

/** What was decided about calls, as lines. `by` says who. */
export function decidedLines(calls) {
  const texts = { approve: "decidedApprove", edit: "decidedEdit", reject: "decidedReject", superseded: "decidedSuperseded" };
  return calls.map((call) => el("p.decided", {}, t(texts[call.decision], { tool: call.tool, by: byUser(call.by) }), call.message ? ` ${call.message}` : ""));
}
