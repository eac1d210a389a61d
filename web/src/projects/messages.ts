import { type Language, bring } from "../i18n";
import { bringSettings } from "../settings/messages";

const load = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/projects") : import("../i18n/en/projects"))).projects;

/** The messages of projects, with those of the settings that they use. */
export const bringProjects = () => Promise.all([bringSettings(), bring(load)]);
