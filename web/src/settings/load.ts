import { type Language, bring } from "../i18n";
import { Settings } from "./Settings";

const settings = async (language: Language) => (await (language === "zh" ? import("../i18n/zh/settings") : import("../i18n/en/settings"))).settings;

/** The settings, with their messages. */
export async function load() {
  await bring(settings);
  return { default: Settings };
}
