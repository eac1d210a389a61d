import { type Language, bring } from "../i18n";
import { Connect } from "./Connect";

const messages = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/connect") : import("../i18n/en/connect"))).connect;

/** The dialog, with its messages. */
export async function load() {
  await bring(messages);
  return { default: Connect };
}
