import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { lookAtLink, redeemLink } from "../api/account";
import { Problem } from "../api/problem";
import type { LinkView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, Skeleton } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Login.module.css";
import { PasswordField } from "./PasswordField";
import { enter } from "./own";
import { SHORTEST, wrongPassword } from "./passwords";

/** Uses a link that works once: the first administrator's, an invitation, or one for a new password. */
export function LinkForm({ token }: { token: string }) {
  const t = useT();
  const { data, error, refetch } = useQuery({
    queryKey: ["link", token],
    queryFn: () => lookAtLink(token),
    staleTime: Infinity,
  });
  if (data) return <NewPassword token={token} link={data} />;
  if (error === null) return <Skeleton label={t("list.loading")} />;
  if (!isUnusable(error)) {
    return (
      <div role="alert" className={styles["form"]}>
        <p>{sentence(error)}</p>
        <Button onClick={() => void refetch()}>{t("shell.retry")}</Button>
      </div>
    );
  }
  return <Unusable />;
}

const isUnusable = (error: unknown) =>
  error instanceof Problem && (error.code === "link_unusable" || error.code === "invalid_request");

function Unusable() {
  const t = useT();
  return (
    <div role="alert" className={styles["form"]}>
      <h1 className={styles["title"]}>{t("login.linkGone")}</h1>
      <p className={styles["note"]}>{t("login.linkGoneHelp")}</p>
      <Button onClick={() => void (location.hash = "")}>{t("login.toLogin")}</Button>
    </div>
  );
}

interface Wrong {
  name?: string;
  password?: string;
  other?: string;
}

/** What is wrong with what was sent, by the field that it is about. */
function wrongOf(error: unknown): Wrong {
  if (!(error instanceof Problem)) return { other: sentence(error) };
  if (error.code === "name_in_use" || error.code === "invalid_input") return { name: sentence(error) };
  return error.code === "password_refused" ? { password: sentence(error) } : { other: sentence(error) };
}

function NewPassword({ token, link: { kind, name: known } }: { token: string; link: LinkView }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const [gone, setGone] = useState(false);
  const [wrong, setWrong] = useState<Wrong>({});
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (wrong.name ?? wrong.password) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [wrong]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const [name, password] = [String(given.get("username")).trim(), String(given.get("password"))];
    const found: Wrong = {};
    if (name === "") found.name = t("login.nameMissing");
    const refused = wrongPassword(password, name);
    if (refused !== undefined) found.password = refused;
    setWrong(found);
    if (Object.keys(found).length) return;
    setBusy(true);
    try {
      const { user } = await redeemLink({ token, password, ...(kind === "setup" ? { name, display: name } : {}) });
      enter(user.id);
    } catch (error) {
      setBusy(false);
      if (isUnusable(error)) setGone(true);
      else setWrong(wrongOf(error));
    }
  };
  if (gone) return <Unusable />;
  return (
    <>
      <h1 className={styles["title"]}>{t(`login.link.${kind}`, { name: known ?? "" })}</h1>
      <p className={styles["note"]}>{t(`login.linkAbout.${kind}`)}</p>
      {wrong.other && (
        <p role="alert" className={styles["wrong"]}>
          {wrong.other}
        </p>
      )}
      <form ref={form} className={styles["form"]} method="post" noValidate onSubmit={(event) => void submit(event)}>
        <Field label={t("login.name")} hint={kind === "setup" ? t("login.nameHint") : undefined} wrong={wrong.name}>
          {(given) => (
            <input
              {...given}
              name="username"
              required
              maxLength={200}
              autoComplete="username"
              autoCapitalize="none"
              autoFocus={kind === "setup"}
              spellCheck={false}
              readOnly={known !== null}
              defaultValue={known ?? ""}
            />
          )}
        </Field>
        <PasswordField
          label={t("login.newPassword")}
          name="password"
          isNew
          hint={t("login.passwordHint", { n: SHORTEST })}
          wrong={wrong.password}
          autoFocus={kind !== "setup"}
        />
        <Button type="submit" kind="primary" disabled={busy} className={styles["submit"]}>
          {t(`login.linkSubmit.${kind}`)}
        </Button>
      </form>
    </>
  );
}
