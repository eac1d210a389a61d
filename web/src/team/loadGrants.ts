import { Grants } from "./Grants";
import { bringTeam } from "./messages";

/** The picker of who may use something, with its messages. */
export async function load() {
  await bringTeam();
  return { default: Grants };
}
