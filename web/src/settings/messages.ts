import { type Language, bring } from "../i18n";

const load = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/settings") : import("../i18n/en/settings"))).settings;

/** The messages of the settings, also for what is opened elsewhere. */
export const bringSettings = () => bring(load);
