import { type Language, bring } from "../i18n";

const load = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/login") : import("../i18n/en/login"))).login;

/** The messages of logins and passwords. */
export const bringLogin = () => bring(load);
