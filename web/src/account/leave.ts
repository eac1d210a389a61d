import { logOut, providerLogout } from "../api/account";
import type { MeView } from "../api/types";
import { LOGIN, leaveTo } from "../login/away";
import { forgetUser } from "../login/own";

/** Logs out, and forgets what the browser keeps of the user. The login provider ends its own login, too. */
export async function leave({ issuer }: MeView) {
  await logOut();
  forgetUser();
  leaveTo(issuer === null ? LOGIN : providerLogout(issuer));
}
