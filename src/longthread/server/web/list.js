// The list of conversations: found, opened, renamed, deleted.

import * as api from "./api.js";
import { byId, el, icon, throttled } from "./dom.js";
import { moment, t } from "./i18n.js";

/** What there is to do about a conversation. */
function badge(item) {
  const text = item.status === "waiting" ? "waits" : item.waitingBelow.length ? "waitsBelow" : item.status === "interrupted" ? "brokenOff" : null;
  return text ? el("span.waits", {}, t(text)) : null;
}

export class ConversationList {
  /** `open(id)` shows a conversation, `gone(id)` is told that one was deleted, `trouble(error)` that something failed. */
  constructor({ open, gone, renamed, trouble }) {
    Object.assign(this, { open, gone, renamed, trouble });
    this.items = [];
    this.damaged = [];
    this.cursor = null;
    this.active = null;
    this.asked = 0;
    byId("search").addEventListener("input", throttled(() => this.refresh(), 200));
    byId("more").addEventListener("click", () => this.load(this.cursor));
  }

  get query() {
    return byId("search").value.trim();
  }

  refresh() {
    return this.load(null);
  }

  async load(cursor) {
    const turn = (this.asked += 1);
    try {
      const page = await api.conversations(cursor, this.query);
      if (turn !== this.asked) return;
      this.items = cursor ? [...this.items, ...page.conversations] : page.conversations;
      this.damaged = cursor ? [...this.damaged, ...page.damaged] : page.damaged;
      this.cursor = page.next_cursor;
      this.render();
    } catch (error) {
      this.trouble(error);
    }
  }

  select(id) {
    this.active = id;
    this.render();
  }

  label(id) {
    return this.items.find((item) => item.id === id)?.label ?? null;
  }

  waits(id) {
    const item = this.items.find((each) => each.id === id);
    return item !== undefined && badge(item) !== null;
  }

  render() {
    const focused = document.activeElement?.closest?.("#list li")?.dataset.id;
    byId("list").replaceChildren(...this.items.map((item) => this.row(item)), ...this.damaged.map((id) => this.ruin(id)));
    if (focused) byId("list").querySelector(`[data-id="${CSS.escape(focused)}"] .open`)?.focus();
    const note = byId("list-note");
    note.hidden = this.items.length + this.damaged.length > 0;
    note.textContent = this.query ? t("nothingFound") : t("noConversations");
    byId("more").hidden = this.cursor === null;
  }

  row(item) {
    const name = item.label || t("untitled");
    const current = item.id === this.active ? "page" : null;
    const open = el("button.open", { type: "button", "aria-current": current, title: name, onclick: () => this.open(item.id) },
      el("span.name", { dir: "auto" }, name),
      badge(item),
      item.agent ? el("span.with", { dir: "auto" }, item.agent.name ?? item.agent.id) : null,
      item.match && item.match !== name ? el("span.match", { dir: "auto" }, item.match) : null,
      el("time", { datetime: item.lastActiveAt }, moment(item.lastActiveAt)));
    const row = el("li", { "data-id": item.id }, open,
      el("button.icon", { type: "button", "aria-label": `${t("rename")}: ${name}`, title: t("rename"), onclick: () => this.rename(item, row) }, icon("rename")),
      el("button.icon", { type: "button", "aria-label": `${t("delete")}: ${name}`, title: t("delete"), onclick: () => this.remove(item) }, icon("delete")));
    return row;
  }

  /** A conversation that cannot be read; all there is to do about it here is to delete it. */
  ruin(id) {
    const open = el("span.open", { title: id }, el("span.name", { dir: "auto" }, id), el("span.waits", {}, t("damaged")));
    return el("li", { "data-id": id }, open,
      el("button.icon", { type: "button", "aria-label": `${t("delete")}: ${id}`, title: t("delete"), onclick: () => this.remove({ id, label: id }) }, icon("delete")));
  }

  rename(item, row) {
    const input = el("input.rename", { value: item.label, maxlength: 200, "aria-label": t("label") });
    let over = false;
    const done = async (keep) => {
      // Taking the field away takes the focus from it, which comes back here.
      if (over) return;
      over = true;
      const label = input.value.trim();
      this.render();
      if (!keep || !label || label === item.label) return;
      try {
        Object.assign(item, await api.rename(item.id, label));
        this.renamed(item.id, label);
        this.render();
      } catch (error) {
        this.trouble(error);
      }
    };
    input.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter") done(true);
      if (event.key === "Escape") done(false);
      event.stopPropagation();
    });
    input.addEventListener("blur", () => done(true));
    row.replaceChildren(input);
    input.focus();
    input.select();
  }

  async remove(item) {
    const dialog = byId("confirm");
    byId("confirm-text").textContent = t("confirmDelete", { label: item.label || t("untitled") });
    dialog.returnValue = "no";
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
    if (dialog.returnValue !== "yes") return;
    try {
      await api.remove(item.id);
      this.items = this.items.filter((each) => each.id !== item.id);
      this.damaged = this.damaged.filter((id) => id !== item.id);
      this.render();
      this.gone(item.id);
    } catch (error) {
      this.trouble(error);
    }
  }
}
