// What a new password must be, as the server has it.

import { t } from "../i18n";

export const SHORTEST = 10;

/** What is wrong with a new password; undefined: nothing. */
export function wrongPassword(password: string, name: string): string | undefined {
  if ([...password].length < SHORTEST) return t("login.tooShort", { n: SHORTEST });
  if (password.trim().toLowerCase() === name.trim().toLowerCase()) return t("login.isName");
  return undefined;
}
