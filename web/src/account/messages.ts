import { type Language, bring } from "../i18n";

const load = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/account") : import("../i18n/en/account"))).account;

/** The messages of the account, also for pages of administrators. */
export const bringAccount = () => bring(load);
