import { bring } from "../i18n";

let brought: Promise<void> | null = null;

/** Brings the messages of share links and of the code for apps, once. */
export const bringMessages = () =>
  (brought ??= bring(
    async (language) => (await (language === "zh" ? import("../i18n/zh/share") : import("../i18n/en/share"))).share,
  ).catch((error: unknown) => {
    brought = null;
    throw error;
  }));
