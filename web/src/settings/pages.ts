import type { ComponentType } from "react";
import type { MeView } from "../api/types";
import type { MessageId } from "../i18n";

/** What the address calls a page of the settings, or a section of one; `settings.page.…` is its title. */
export type SettingsPage =
  Extract<MessageId, `settings.page.${string}`> extends `settings.page.${infer Page}` ? Page : never;

export interface ShownPage {
  section: SettingsPage;
  /** The definition that is edited, or the source of the terms. */
  name?: string | undefined;
  /** The part of the page that is shown first. */
  part?: string | undefined;
}

interface PageEntry {
  id: SettingsPage;
  /** The page that it is a section of. */
  of?: SettingsPage;
  /** Who sees it, where users log in; without it, everyone does. */
  for?: "user" | "admin";
  load: () => Promise<ComponentType<ShownPage>>;
}

const loadAccount = async () => (await import("../account/load")).load();
const loadTeam = async () => (await import("../team/load")).load();
const loadCatalog = async () => (await import("../catalog/load")).load();

/** The pages of the settings and their sections, in their order. */
export const PAGES: readonly PageEntry[] = [
  { id: "models", load: async () => (await import("./Models")).Models },
  { id: "data", load: async () => (await import("./Sources")).Sources },
  { id: "agents", load: async () => (await loadCatalog()).Catalog },
  { id: "skills", of: "agents", load: async () => (await loadCatalog()).Catalog },
  { id: "tools", of: "agents", load: async () => (await loadCatalog()).Catalog },
  { id: "memories", of: "agents", load: async () => (await import("./Memories")).Memories },
  { id: "terms", of: "agents", load: async () => (await loadCatalog()).Terms },
  { id: "you", load: async () => (await import("./You")).You },
  { id: "account", for: "user", load: async () => (await loadAccount()).Account },
  { id: "users", for: "admin", load: async () => (await loadTeam()).Users },
  { id: "groups", of: "users", for: "admin", load: async () => (await loadTeam()).Groups },
  { id: "usage", of: "users", for: "admin", load: async () => (await loadTeam()).TeamUsage },
  { id: "audit", of: "users", for: "admin", load: async () => (await loadTeam()).Audit },
];

/** The pages that a user sees. Null: the server asks for no login. */
export const pagesOf = (user: MeView | null) =>
  PAGES.filter((page) => page.for === undefined || (user !== null && (page.for === "user" || user.role === "admin")));
