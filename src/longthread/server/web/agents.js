// Whom a new conversation is with: an agent of the catalog, the analyst by default.

import * as api from "./api.js";
import { byId, el } from "./dom.js";
import { t } from "./i18n.js";

const OURS = { analyst: "aboutAnalyst", assistant: "aboutAssistant" };
const NOBODY = { id: "", name: "analyst", description: "", asksSource: true, source: null };

export class AgentChoice {
  /** `changed()` is called when another agent was chosen. */
  constructor({ changed }) {
    this.all = [];
    this.select = byId("agents");
    this.select.addEventListener("change", changed);
  }

  async load() {
    this.all = (await api.agents()).agents;
    const chosen = this.select.value;  // now, for another may have been chosen meanwhile
    this.select.replaceChildren(...this.all.map((agent) => el("option", { value: agent.id, selected: agent.id === chosen }, agent.name)));
  }

  get chosen() {
    return this.all.find((agent) => agent.id === this.select.value) ?? this.all[0] ?? NOBODY;
  }

  /** Whether it is the one that a conversation is with by default. */
  get isDefault() {
    return this.chosen === (this.all[0] ?? NOBODY);
  }

  /** What an agent is for: of the built-in ones in the page's language. */
  about({ name, description } = this.chosen) {
    return name in OURS ? t(OURS[name]) : description;
  }
}
