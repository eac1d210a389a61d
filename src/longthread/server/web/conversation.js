// The conversation that is shown: its turns, and the run that is under way.

import * as api from "./api.js";
import { waitingCards } from "./below.js";
import { byId, el } from "./dom.js";
import { t } from "./i18n.js";
import { watch } from "./stream.js";
import { queuedItem } from "./queue.js";
import { TurnView } from "./turn.js";

export class Conversation {
  /** `changed()` is called when what can be done has changed; `trouble(error | null)` when something failed. */
  constructor({ changed, trouble }) {
    Object.assign(this, { changed, trouble });
    this.box = byId("thread");
    this.scroller = byId("scroll");
    this.unwatch = null;
    this.following = true;
    this.loads = 0;
    this.changes = 0;
    this.scroller.addEventListener("scroll", () => (this.following = this.atBottom()));
    new ResizeObserver(() => this.following && this.toBottom()).observe(this.box);
    this.clear();
  }

  clear() {
    this.loads += 1;
    this.unwatch?.();
    this.unwatch = this.due = null;
    this.id = this.wanted = null;
    this.label = "";
    this.source = null;
    this.agent = null;
    this.parent = null;
    this.below = el("div.below");
    this.queue = [];
    this.waiting = el("ol.queue");
    this.turns = [];
    this.lastRun = null;
    this.earlier = null;
    this.following = true;
    this.box.replaceChildren();
  }

  get running() {
    return this.unwatch !== null;
  }

  /** Whether its run waits for a person. */
  get waits() {
    return this.turns.at(-1)?.status === "waiting";
  }

  /** Shows a conversation as it is stored, and what is going on in it. */
  async load(id) {
    const history = await this.newest(id);
    if (history === null) return;
    this.clear();
    this.id = this.wanted = id;
    this.label = history.label;
    this.source = history.source;
    this.stand(history);
    this.lastActiveAt = history.lastActiveAt;
    const views = this.views(history);
    this.turns = views;
    this.box.replaceChildren(...this.earlierButton(history.before), ...views.map((view) => view.node), this.below, this.waiting);
    this.lastRun = history.run;
    this.retireOld();
    const last = history.run;
    this.queue = history.queue;
    if (last?.status === "running" && views.length) this.follow(last.events, views.at(-1));
    else this.next();
    this.showQueue();
    this.toBottom();
  }

  /** Shows what is stored now of the conversation that was opened last, even if it has not appeared yet. */
  async again() {
    if (this.wanted !== null) await this.load(this.wanted);
  }

  /** What is stored now: nothing if something else was opened meanwhile, and asked for again if something was done here,
   * since the answer may be of before. */
  async newest(id) {
    const turn = (this.loads += 1);
    this.wanted = id;
    for (;;) {
      const { changes } = this;
      const history = await api.history(id);
      if (turn !== this.loads) return null;
      if (changes === this.changes) return history;
    }
  }

  /** Whether the thread has moved on elsewhere since it was loaded. */
  async isStale() {
    const history = await api.history(this.id);
    const { run, lastActiveAt } = history;
    this.stand(history);
    if (this.waits && run?.status !== "waiting") return true;
    return run || this.lastRun ? run?.id !== this.lastRun?.id : lastActiveAt !== this.lastActiveAt;
  }

  /** Where the conversation stands among others, and what has become of those that were asked for in it. */
  stand(history) {
    this.agent = history.agent;
    this.parent = history.parent;
    this.below.replaceChildren(...waitingCards(history.waitingBelow));
    for (const run of history.runs) if (run.asked.length) for (const view of this.turns) view.refer(run.asked);
  }

  /** Looks where the conversation stands now. */
  async lookAround() {
    const { id } = this;
    const history = await api.history(id, { limit: 1 });
    if (id === this.id) this.stand(history);
  }

  /** Looks for the conversations in which agents work on calls of a turn, until they are found. */
  async lookBelow(view) {
    if (view.looking) return;
    view.looking = true;
    for (let wait = 300; view.looksBelow && view.node.isConnected; wait = Math.min(8000, wait * 2)) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      // It is only a shortcut: the result of the call names the conversation too.
      if (view.looksBelow && view.node.isConnected) await this.lookAround().catch(() => null);
    }
    view.looking = false;
  }

  views(history) {
    const runs = new Map(history.runs.map((run) => [run.id, run]));
    const turns = [];
    for (const message of history.messages) {
      const steps = history.steps[message.id] ?? [];
      if (message.role === "user") turns.push({ question: message.content, run: runs.get(message.run_id), said: [], steps });
      else if (turns.length) turns.at(-1).said.push(message.content);
      else turns.push({ question: null, said: [message.content], steps });
    }
    const actions = this.actions();
    return turns.map(({ question, run, said, steps }) => {
      // A LangGraph application, or who wrote the thread elsewhere, has no runs.
      if (!run) return TurnView.said(question, said, steps, this.id, actions);
      // The run that is under way is told by its stream, from its first event on.
      if (run.status === "running") return new TurnView(question, this.id, actions);
      return TurnView.of(question, run, history.steps[run.id] ?? [], this.id, actions);
    });
  }

  actions() {
    return {
      onContinue: (turn) => this.goOn(turn),
      onDecide: (turn, call, decision) => this.decide(turn, call, decision),
      onAsk: (turn) => this.lookBelow(turn),
      jump: (query) => this.jump(query),
    };
  }

  earlierButton(before) {
    if (!before) return [];
    const button = el("button.quiet.earlier", { type: "button" }, t("earlier"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const history = await api.history(this.id, { before });
        const views = this.views(history);
        const height = this.scroller.scrollHeight;
        this.turns = [...views, ...this.turns];
        button.replaceWith(...this.earlierButton(history.before), ...views.map((view) => view.node));
        this.retireOld();
        this.scroller.scrollTop += this.scroller.scrollHeight - height;
      } catch (error) {
        button.disabled = false;
        this.trouble(error);
      }
    });
    return [button];
  }

  /** Whether a conversation was begun; null where another was opened meanwhile, which stays. */
  async ask(question, options) {
    const { wanted } = this;
    const given = this.id ? { question, thread_id: this.id } : { question, ...options };
    const answer = await api.ask(given);
    const { thread_id: id, run_id: run, queued_id: queued, events } = answer;
    this.changes += 1;
    if (this.wanted !== wanted) return null;
    if (queued && this.id !== null) {
      if (!this.queue.some((each) => each.queued_id === queued)) this.queue.push({ ...answer, question });
      this.next();
      this.showQueue();
      return false;
    }
    if (run && run === this.lastRun?.id) return false;  // loaded meanwhile
    const isNew = this.id === null;
    if (isNew) {
      this.clear();
      this.box.replaceChildren(this.below, this.waiting);
    }
    this.id = this.wanted = id;
    this.lastRun = { id: run };
    this.due = queued ? answer : null;
    this.add(question, events);
    return isNew;
  }

  /** Watches the next question that waits, when nothing is under way before it. */
  next() {
    if (this.running || this.waits || !this.queue.length) return;
    this.due = this.queue.shift();
    this.add(this.due.question, this.due.events);
    this.showQueue();
  }

  /** Stops what is under way: a run, or the question that is shown as the next and may still wait for room. */
  async stop() {
    if (this.due) {
      const removed = await api.unqueue(this.id, this.due.queued_id).then(() => true, () => false);
      if (removed) return;
    }
    await api.stop(this.id, this.turns.at(-1)?.run.id);
  }

  showQueue() {
    this.waiting.replaceChildren(...this.queue.map((each) => queuedItem(each, () => this.unqueue(each))));
    if (this.following) this.toBottom();
  }

  async unqueue(question) {
    try {
      await api.unqueue(this.id, question.queued_id);
    } catch (error) {
      // It has begun: it will be seen when what is before it has ended.
      if (error.code !== "question_not_found") this.trouble(error);
      return;
    }
    this.queue = this.queue.filter((each) => each !== question);
    this.showQueue();
  }

  async goOn(turn) {
    this.trouble(null);
    try {
      const { run_id: run, events } = await api.resume(this.id);
      this.changes += 1;
      if (!this.turns.includes(turn)) await this.again();
      else if (run === this.lastRun?.id) {
        this.tellAgain(turn, events);
      } else {
        this.lastRun = { id: run };
        this.add(t("go"), events);
      }
    } catch (error) {
      this.trouble(error);
    }
  }

  /** Sends what was decided about a call. With the last one the run goes on; else the others still wait. */
  async decide(turn, call, decision) {
    this.trouble(null);
    try {
      const answer = await api.decide(this.id, { [call.id]: decision });
      this.changes += 1;
      // Loaded meanwhile, it may stand here as it was before.
      if (!this.turns.includes(turn)) await this.again();
      else if (answer.events) this.tellAgain(turn, answer.events);
      else turn.settle(answer);
    } catch (error) {
      // Somebody else has decided, or asked something else: show what became of it.
      if (error.code !== "not_pending") throw error;
      await this.again();
      this.trouble(error);
    }
  }

  /** The same run goes on: it is told again from the start, into an empty turn. */
  tellAgain(turn, events) {
    const fresh = new TurnView(turn.question, this.id, this.actions());
    turn.node.replaceWith(fresh.node);
    this.turns[this.turns.indexOf(turn)] = fresh;
    this.follow(events, fresh);
  }

  add(question, events) {
    const view = new TurnView(question, this.id, this.actions());
    this.turns.push(view);
    this.below.before(view.node);
    this.retireOld();
    this.follow(events, view);
    this.following = true;
    this.toBottom();
  }

  retireOld() {
    for (const view of this.turns.slice(0, -1)) view.retire();
  }

  follow(events, view) {
    this.unwatch?.();
    this.unwatch = watch(events, view, {
      onEnd: (removed) => {
        this.unwatch = this.due = null;
        this.trouble(null);
        if (removed) return this.again().then(() => this.changed(), this.trouble);
        if (view.hasAsked || this.below.hasChildNodes()) this.lookAround().catch(this.trouble);
        if (view.status === "running") this.again().catch(this.trouble);
        else this.next();
        this.changed(view);
      },
      onTrouble: (broken) => this.trouble(broken ? new Error(t("reconnecting")) : null),
    });
    this.changed();
  }

  jump(query) {
    for (const view of [...this.turns].reverse()) {
      const step = view.find(query);
      if (step) {
        step.reveal();
        return;
      }
    }
  }

  atBottom() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 60;
  }

  toBottom() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}
