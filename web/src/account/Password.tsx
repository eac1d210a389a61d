import { type FormEvent, useRef, useState } from "react";
import { changePassword } from "../api/account";
import { queryClient } from "../api/cache";
import { Problem } from "../api/problem";
import type { MeView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { failure } from "../login/failure";
import { PasswordField } from "../login/PasswordField";
import { SHORTEST, wrongPassword } from "../login/passwords";
import { Part } from "../settings/parts";
import { Button, say } from "../ui";
import styles from "./Forms.module.css";

interface Wrong {
  current?: string;
  password?: string;
}

/** Sets another password, or the first one of a user who logs in elsewhere. */
export function Password({ user }: { user: MeView }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<Wrong>({});
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const password = String(given.get("password"));
    const refused = wrongPassword(password, user.name);
    setWrong(refused === undefined ? {} : { password: refused });
    if (refused !== undefined) return;
    setBusy(true);
    try {
      await changePassword({ password, current: String(given.get("current")) });
      form.current?.reset();
      say({ text: t("account.passwordSet") });
      await Promise.all(["sessions", "me"].map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
    } catch (error) {
      if (!(error instanceof Problem)) say({ text: sentence(error), kind: "bad" });
      else if (error.code === "login_failed") setWrong({ current: t("account.passwordWrong") });
      else setWrong({ [error.code === "login_throttled" ? "current" : "password"]: failure(error) });
    } finally {
      setBusy(false);
    }
  };
  if (!user.has_password) {
    return (
      <Part title={t("account.password")} about={t("account.passwordNone")}>
        {null}
      </Part>
    );
  }
  return (
    <Part title={t("account.password")} about={t("account.passwordAbout")}>
      <form
        ref={form}
        className={styles["form"]}
        noValidate
        onSubmit={(event) => void submit(event)}
        onChange={() => setWrong({})}
      >
        {/* A password manager sees whose password it is. */}
        <input hidden readOnly autoComplete="username" name="username" value={user.name} />
        <PasswordField label={t("account.passwordNow")} name="current" wrong={wrong.current} />
        <PasswordField
          label={t("login.newPassword")}
          name="password"
          isNew
          hint={t("login.passwordHint", { n: SHORTEST })}
          wrong={wrong.password}
        />
        <div className={styles["buttons"]}>
          <Button type="submit" disabled={busy}>
            {t("account.passwordChange")}
          </Button>
        </div>
      </form>
    </Part>
  );
}
