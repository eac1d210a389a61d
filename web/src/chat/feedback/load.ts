import { bring } from "../../i18n";
import { Feedback } from "./Feedback";

/** The thumbs, with their messages. */
export async function load() {
  await bring(
    async (language) =>
      (await (language === "zh" ? import("../../i18n/zh/feedback") : import("../../i18n/en/feedback"))).feedback,
  );
  return { default: Feedback };
}
