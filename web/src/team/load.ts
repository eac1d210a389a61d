import { Audit } from "./Audit";
import { Groups } from "./Groups";
import { TeamUsage } from "./TeamUsage";
import { Users } from "./Users";
import { bringTeam } from "./messages";

/** The pages of administrators, with their messages. */
export async function load() {
  await bringTeam();
  return { Audit, Groups, TeamUsage, Users };
}
