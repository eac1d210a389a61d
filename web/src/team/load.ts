import { bringAccount } from "../account/messages";
import { type Language, bring } from "../i18n";
import { Audit } from "./Audit";
import { Groups } from "./Groups";
import { TeamUsage } from "./TeamUsage";
import { Users } from "./Users";

const messages = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/team") : import("../i18n/en/team"))).team;

/** The pages of administrators, with their messages. */
export async function load() {
  await Promise.all([bringAccount(), bring(messages)]);
  return { Audit, Groups, TeamUsage, Users };
}
