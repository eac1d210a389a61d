import { Problem } from "../api/problem";
import { type MessageId, t } from "../i18n";
import { sentence } from "../i18n/sentence";

/** The sentence for a login, or a new password, that was refused. */
export function failure(error: unknown): string {
  if (!(error instanceof Problem)) return sentence(error);
  const seconds = Number(error.params["seconds"]);
  if (error.code === "login_throttled" && seconds > 0) {
    const [id, n]: [MessageId, number] = seconds < 90 ? ["login.wait", seconds] : ["login.waitLong", seconds / 60];
    return t(id, { n: Math.ceil(n) });
  }
  return error.code === "login_failed" ? t("login.failed") : sentence(error);
}
