import { type FormEvent, useRef, useState } from "react";
import { logIn, providerPath } from "../api/account";
import type { AuthView } from "../api/types";
import { isMessage, t as say, useT } from "../i18n";
import { Button } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Login.module.css";
import { PasswordField } from "./PasswordField";
import { failure } from "./failure";
import { back, enter } from "./own";

/** What went wrong at a login provider, by the code in the address. */
function refusal(): string | null {
  const code = new URLSearchParams(location.search).get("error");
  if (code === null) return null;
  const id = `login.error.${code}`;
  return say(isMessage(id) ? id : "login.error");
}

/** Logs in with a name and a password, or at a provider. */
export function LoginForm({ auth: { issuers, setup } }: { auth: AuthView }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(refusal);
  const password = useRef<HTMLInputElement>(null);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    setBusy(true);
    setWrong(null);
    try {
      const { user } = await logIn({ name: String(given.get("username")), password: String(given.get("password")) });
      enter(user.id);
    } catch (error) {
      setWrong(failure(error));
      setBusy(false);
      password.current?.select();
    }
  };
  return (
    <>
      <h1 className={styles["title"]}>{t("login.title")}</h1>
      {wrong !== null && (
        <p role="alert" className={styles["wrong"]}>
          {wrong}
        </p>
      )}
      {setup && <p className={styles["note"]}>{t("login.setup")}</p>}
      {issuers.length > 0 && (
        <>
          <ul className={styles["issuers"]}>
            {issuers.map(({ id, label }) => (
              <li key={id}>
                <a className={styles["issuer"]} href={providerPath(id, back())}>
                  {t("login.with", { provider: label })}
                </a>
              </li>
            ))}
          </ul>
          <p className={styles["or"]}>{t("login.or")}</p>
        </>
      )}
      <form className={styles["form"]} method="post" onSubmit={(event) => void submit(event)}>
        <Field label={t("login.name")}>
          {(given) => (
            <input
              {...given}
              name="username"
              required
              maxLength={200}
              autoComplete="username"
              autoCapitalize="none"
              autoFocus={issuers.length === 0}
              spellCheck={false}
            />
          )}
        </Field>
        <PasswordField label={t("login.password")} name="password" field={password} />
        <Button type="submit" kind="primary" disabled={busy} className={styles["submit"]}>
          {t("login.submit")}
        </Button>
      </form>
      <p className={styles["note"]}>{t("login.forgot")}</p>
    </>
  );
}
