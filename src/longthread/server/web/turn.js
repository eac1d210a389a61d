// One turn of a conversation: the question, the steps of its run, and how it ended. The same view is filled from the
// stream and from the history, so that a page looks the same before and after it is loaded again.

import { approvalCard, decidedLines } from "./approval.js";
import { answerOf, mayAsk } from "./below.js";
import { el, throttled } from "./dom.js";
import { sentence } from "./errors.js";
import { duration, t } from "./i18n.js";
import { markdown } from "./markdown.js";
import { StepView } from "./step.js";

export class TurnView {
  /** `onContinue` is called when the user wants to go on; `onDecide` when they decide about a call that waits; `jump` when
   * a query's label is clicked; `onAsk` when a step seems to ask another agent. */
  constructor(question, threadId, { onContinue, onDecide, onAsk, jump }) {
    this.threadId = threadId;
    this.question = question;
    this.onContinue = onContinue;
    this.onDecide = onDecide;
    this.onAsk = onAsk;
    this.jump = jump;
    this.steps = new Map();
    this.decided = new Map();
    this.status = "running";
    this.text = "";
    this.textId = null;
    this.run = {};
    this.list = el("ol.steps");
    this.decisions = el("div.decisions");
    this.warnings = el("div.warnings");
    this.answer = el("div.answer");
    this.foot = el("div.foot");
    this.working = el("p.working", {}, el("span.pulse", { "aria-hidden": true }), t("working"));
    this.node = el("article.turn", {},
      question === null ? null : el("div.question", { dir: "auto" }, el("span.unseen", {}, `${t("you")}: `), question),
      el("div.reply", {}, this.list, this.decisions, this.warnings, this.answer, this.working, this.foot));
    this.draw = throttled(() => this.renderText(), 60);
  }

  /** The whole of a run of the history. */
  static of(question, run, steps, threadId, actions) {
    const view = new TurnView(question, threadId, actions);
    view.start({ ...run, at: Date.parse(run.started_at) });
    for (const message of run.warnings) view.warn(message);
    view.decide((run.approvals ?? []).filter((call) => call.decision));
    const asked = new Map((run.asked ?? []).map((each) => [each.call_id, each]));
    for (const step of steps) {
      view.beginStep({ ...step, asked: asked.get(step.call_id) });
      if (step.observation) view.endStep(step.call_id, step);
    }
    view.end({ status: run.status, outcome: run.outcome, at: Date.parse(run.ended_at) });
    return view;
  }

  /** What was said without a run; `question` is null where an assistant began. */
  static said(question, texts, steps, threadId, actions) {
    const view = new TurnView(question, threadId, actions);
    for (const step of steps) {
      view.beginStep(step);
      if (step.observation) view.endStep(step.call_id, step);
    }
    view.status = "finished";
    view.text = texts.join("\n\n");
    view.draw.now();
    view.working.remove();
    return view;
  }

  start(run) {
    this.run = run;
  }

  beginText(id) {
    this.textId = id;
    this.text = "";
  }

  addText(id, delta) {
    if (id !== this.textId) this.beginText(id);
    this.text += delta;
    this.draw();
  }

  withdrawText(id) {
    if (id !== this.textId) return;
    this.beginText(null);
    this.draw();
  }

  warn(message) {
    this.warnings.append(el("p.warning", {}, message));
  }

  /** What a person has decided about calls of the run. */
  decide(calls) {
    for (const call of calls) {
      this.decided.set(call.id, call);
      this.steps.get(call.id)?.decide(call);
    }
    this.decisions.append(...decidedLines(calls));
  }

  /** Some calls are decided, and others wait: what is being typed about these stays. */
  settle({ pending, decided }) {
    const waits = new Set(pending.map((call) => call.id));
    for (const card of this.foot.querySelectorAll(".approval")) {
      const id = card.dataset.call;
      if (waits.has(id)) continue;
      card.remove();
      this.decide(decided.filter((call) => call.id === id).slice(-1));
    }
  }

  beginStep(step) {
    if (this.steps.has(step.call_id)) return;
    const view = new StepView({ ...step, decision: this.decided.get(step.call_id) }, this.threadId);
    this.steps.set(step.call_id, view);
    this.list.append(view.node);
    if (mayAsk(step) && !step.asked && !step.observation) this.onAsk(this);
  }

  /** Which conversations answer calls of the run. */
  refer(asked) {
    for (const each of asked) this.steps.get(each.call_id)?.refer(each);
  }

  /** Whether a step asks another agent, and it is not known in which conversation. */
  get looksBelow() {
    return [...this.steps.values()].some(({ step }) => mayAsk(step) && !answerOf(step) && !step.observation && step.status !== "abandoned");
  }

  get hasAsked() {
    return [...this.steps.values()].some(({ step }) => answerOf(step) !== null);
  }

  endStep(callId, outcome) {
    this.steps.get(callId)?.end(outcome);
  }

  /** `status`: finished, paused, failed, waiting or interrupted; `outcome`: what the run's last event says. */
  end({ status, outcome, at }) {
    this.status = status;
    this.outcome = outcome;
    this.endedAt = at;
    if (status === "finished") this.text = outcome.answer ?? this.text;
    else this.text = status === "paused" && outcome.reason === "max_steps" ? outcome.summary ?? "" : "";
    for (const step of this.steps.values()) step.abandon();
    this.draw.now();
    this.working.remove();
    this.foot.replaceChildren(...this.footParts());
  }

  /** A run that was interrupted, or waited, goes on. */
  reopen() {
    this.status = "running";
    this.foot.replaceChildren();
    this.foot.before(this.working);
  }

  find(query) {
    return [...this.steps.values()].find((step) => step.query === query) ?? null;
  }

  renderText() {
    this.answer.replaceChildren(...markdown(this.text, (query) => this.label(query)));
  }

  label(query) {
    return el("button.cite", { type: "button", title: t("jump", { query }), onclick: () => this.jump(query) }, query);
  }

  footParts() {
    const { status, outcome } = this;
    const parts = [];
    if (status === "failed") parts.push(this.card("bad", t("error"), outcome.error ? sentence(outcome.error) : null, true));
    if (status === "interrupted") parts.push(this.card("calm", t("interrupted"), t("interruptedText"), true));
    if (status === "paused" && outcome.reason === "max_steps") parts.push(this.card("calm", t("paused"), null, true));
    if (status === "waiting") parts.push(...(outcome.calls ?? []).map((call) => approvalCard(call, (decision) => this.onDecide(this, call, decision))));
    const superseded = status === "paused" && outcome.reason === "superseded";
    if (superseded) parts.push(this.card("calm", t("superseded"), null, false));
    if (status === "paused" && outcome.reason !== "max_steps" && !superseded) parts.push(this.card("calm", t("stopped"), t("stoppedText"), true));
    const unsourced = (outcome.citations ?? []).filter((each) => !each.query).map((each) => each.number);
    if (status === "finished" && unsourced.length && (outcome.queries ?? []).length) {
      parts.push(el("p.warning", {}, t("unsourced", { numbers: unsourced.slice(0, 12).join(" · ") })));
    }
    parts.push(this.meta());
    return parts;
  }

  /** How the run ended, where it did not end in an answer, with what can be done about it. */
  card(tone, head, text, goes) {
    const go = el("button.go", { type: "button", onclick: () => this.onContinue(this) }, t("go"));
    return el(`div.card.${tone}`, {}, el("div", {}, el("strong", {}, head), text ? el("p", {}, text) : null), goes ? go : null);
  }

  meta() {
    const { outcome, run } = this;
    const labels = [...this.steps.values()].map((step) => step.query).filter(Boolean);
    const elapsed = this.endedAt && run.at ? duration(Math.max(0, this.endedAt - run.at)) : "";
    const usage = outcome.usage ?? {};
    const title = usage.input_tokens ? t("tokens", { input: usage.input_tokens, output: usage.output_tokens }) : null;
    const model = run.model === "demo" ? el("span.badge", { title: t("demoModelHint") }, t("demoModel")) : el("span", {}, run.model ?? "");
    return el("p.meta", { title }, model,
      this.steps.size ? el("span", {}, t("steps", { n: this.steps.size })) : null,
      elapsed ? el("span", {}, elapsed) : null,
      labels.length ? el("span", {}, `${t("queries")} `, labels.map((query) => this.label(query))) : null);
  }

  /** Only the newest unfinished turn can be gone on with. */
  retire() {
    if (this.status === "waiting") this.end({ status: "paused", outcome: { reason: "superseded" }, at: this.endedAt });
    for (const button of this.foot.querySelectorAll(".go")) button.remove();
  }
}
