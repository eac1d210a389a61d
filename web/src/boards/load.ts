import { type Language, bring } from "../i18n";
import { bringMessages } from "../share/messages";

const messages = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/boards") : import("../i18n/en/boards"))).boards;

/** The pages of boards, with their messages. */
export async function load() {
  await Promise.all([bring(messages), bringMessages()]);
  return { default: (await import("./Boards")).Boards };
}

/** What saves a result to a board. */
export async function loadSave() {
  await bring(messages);
  return (await import("./SaveDialog")).SaveDialog;
}
