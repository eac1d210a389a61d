import { bringAccount } from "../account/messages";
import { type Language, bring } from "../i18n";

const load = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/team") : import("../i18n/en/team"))).team;

/** The messages of the pages of administrators, with those of the account that they use. */
export const bringTeam = () => Promise.all([bringAccount(), bring(load)]);
