import { bringLogin } from "../login/messages";
import { Account } from "./Account";
import { bringAccount } from "./messages";

/** The account, with its messages. */
export async function load() {
  await Promise.all([bringAccount(), bringLogin()]);
  return { Account };
}
