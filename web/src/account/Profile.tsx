import { type FormEvent, useState } from "react";
import { changeMe } from "../api/account";
import { queryClient } from "../api/cache";
import type { MeView } from "../api/types";
import { useT } from "../i18n";
import { Part } from "../settings/parts";
import { Button, say } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Forms.module.css";
import { budgetText, useCurrency } from "./budget";
import { useAct } from "./useAct";

/** How the user is called, and what administrators decided. */
export function Profile({ user }: { user: MeView }) {
  const t = useT();
  const { busy, act } = useAct();
  const currency = useCurrency();
  const [display, setDisplay] = useState(user.display);
  const [email, setEmail] = useState(user.email ?? "");
  const changed = display.trim() !== user.display || email.trim() !== (user.email ?? "");
  const save = async (event: FormEvent) => {
    event.preventDefault();
    const body = { display: display.trim(), ...(email.trim() === (user.email ?? "") ? {} : { email: email.trim() }) };
    const done = await act(async () => queryClient.setQueryData(["me"], await changeMe(body)));
    if (!done) return;
    say({ text: t("account.saved") });
    await queryClient.invalidateQueries({ queryKey: ["info"] });
  };
  return (
    <Part title={t("account.profile")}>
      <dl className={styles["facts"]}>
        <dt>{t("account.name")}</dt>
        <dd>{user.name}</dd>
        <dt>{t("account.role")}</dt>
        <dd>{t(`account.role.${user.role}`)}</dd>
        {user.groups.length > 0 && (
          <>
            <dt>{t("account.groups")}</dt>
            <dd>{user.groups.join(", ")}</dd>
          </>
        )}
        {user.budget && (
          <>
            <dt>{t("account.budget")}</dt>
            <dd>{budgetText(user.budget, currency)}</dd>
          </>
        )}
      </dl>
      <form className={styles["form"]} onSubmit={(event) => void save(event)}>
        <Field label={t("account.display")} hint={t("account.displayHint")}>
          {(given) => (
            <input
              {...given}
              required
              maxLength={200}
              autoComplete="name"
              dir="auto"
              value={display}
              onChange={(event) => setDisplay(event.target.value)}
            />
          )}
        </Field>
        <Field label={t("account.email")}>
          {(given) => (
            <input
              {...given}
              type="email"
              maxLength={320}
              autoComplete="email"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          )}
        </Field>
        <div className={styles["buttons"]}>
          <Button type="submit" disabled={busy || !changed || display.trim() === ""}>
            {t("account.save")}
          </Button>
        </div>
      </form>
    </Part>
  );
}
