import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { addUser, groups } from "../api/administration";
import type { AccountView, NewAccountView } from "../api/types";
import forms from "../account/Forms.module.css";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Part } from "../settings/parts";
import { Button } from "../ui";
import { Field } from "../ui/Field";
import { LinkMade } from "./LinkMade";
import { refreshUsers } from "./refresh";
import { ROLES } from "./roles";

/** Adds a user. The link, which is shown this once, lets the person set a password. */
export function AddUser() {
  const t = useT();
  const [made, setMade] = useState<NewAccountView | null>(null);
  const [wrong, setWrong] = useState<string>();
  const [busy, setBusy] = useState(false);
  const known = useQuery({ queryKey: ["groups"], queryFn: ({ signal }) => groups(signal) });
  const own = (known.data?.groups ?? []).filter(({ origin }) => origin === "local");
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    const name = String(given.get("name")).trim();
    setBusy(true);
    setWrong(undefined);
    try {
      setMade(
        await addUser({
          name,
          role: String(given.get("role")) as AccountView["role"],
          groups: given.getAll("group").map(String),
        }),
      );
      form.reset();
    } catch (error) {
      setWrong(sentence(error));
    }
    setBusy(false);
    await refreshUsers();
  };
  return (
    <Part title={t("team.addUser")} about={t("team.addUserAbout")}>
      {made && <LinkMade key={made.id} link={made.link} name={made.display || made.name} />}
      <form className={forms["wide"]} onSubmit={(event) => void add(event)}>
        <div className={forms["row"]}>
          <Field label={t("account.name")} wrong={wrong}>
            {(given) => (
              <input
                {...given}
                name="name"
                required
                maxLength={200}
                autoComplete="off"
                autoCapitalize="none"
                spellCheck={false}
                onChange={() => setWrong(undefined)}
              />
            )}
          </Field>
          <Field label={t("account.role")}>
            {(given) => (
              <select {...given} name="role" defaultValue="member">
                {ROLES.map((role) => (
                  <option key={role} value={role}>
                    {t(`account.role.${role}`)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        {own.length > 0 && (
          <fieldset className={forms["checks"]}>
            <legend>{t("account.groups")}</legend>
            {own.map((each) => (
              <label key={each.id} className={forms["check"]}>
                <input type="checkbox" name="group" value={each.name} />
                <span dir="auto">{each.name}</span>
              </label>
            ))}
          </fieldset>
        )}
        <div>
          <Button type="submit" kind="primary" disabled={busy}>
            {t("team.invite")}
          </Button>
        </div>
      </form>
    </Part>
  );
}
