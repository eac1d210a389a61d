import { bring } from "../i18n";

/** Brings the messages about files. */
export const bringFiles = () =>
  bring(
    async (language) => (await (language === "zh" ? import("../i18n/zh/files") : import("../i18n/en/files"))).files,
  );
