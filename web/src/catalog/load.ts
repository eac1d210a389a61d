import { type Language, bring } from "../i18n";
import { Catalog } from "./Catalog";
import { Terms } from "./Terms";

const messages = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/catalog") : import("../i18n/en/catalog"))).catalog;

/** The editors, with their messages. */
export async function load() {
  await bring(messages);
  return { Catalog, Terms };
}
