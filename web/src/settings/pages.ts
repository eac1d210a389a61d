import type { MessageId } from "../i18n";
import type { SettingsPage } from "../route";

/** The pages of the settings, in their order, each with its sections. A page opens with the first of them. */
export const PAGES = [
  { id: "models", sections: ["models"] },
  { id: "data", sections: ["data"] },
  { id: "agents", sections: ["agents", "skills", "tools", "memories", "terms"] },
  { id: "you", sections: ["you"] },
] as const satisfies readonly { id: SettingsPage; sections: readonly SettingsPage[] }[];

/** What can be gone to by its name. */
export const SECTIONS = [...PAGES.flatMap(({ sections }) => sections), "usage"] as const;

export const LABELS: Record<(typeof SECTIONS)[number], MessageId> = {
  models: "settings.page.models",
  data: "settings.page.data",
  agents: "settings.agents",
  skills: "settings.skills",
  tools: "settings.tools",
  memories: "settings.memories",
  terms: "settings.terms",
  you: "settings.page.you",
  usage: "settings.usage",
};
