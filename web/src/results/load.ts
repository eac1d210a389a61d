import { type Language, bring } from "../i18n";
import { ChartEditor } from "./ChartEditor";

const messages = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/chart") : import("../i18n/en/chart"))).chart;

/** The editor of charts, with its messages. */
export async function load() {
  await bring(messages);
  return ChartEditor;
}
