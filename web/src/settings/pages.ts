import type { SettingsPage } from "../route";

/** The pages of the settings, in their order. */
export const BUILT: readonly SettingsPage[] = ["appearance", "models", "sources", "agents", "skills", "tools", "memories", "usage"];
