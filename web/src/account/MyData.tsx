import { type FormEvent, useState } from "react";
import { EXPORT, eraseMe } from "../api/account";
import type { MeView } from "../api/types";
import { useT } from "../i18n";
import { LOGIN, leaveTo } from "../login/away";
import { failure } from "../login/failure";
import { forgetUser } from "../login/own";
import { PasswordField } from "../login/PasswordField";
import { Part } from "../settings/parts";
import { Button, Dialog, Icon } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Forms.module.css";

/** All that is kept of the user: as a file, and erased. */
export function MyData({ user }: { user: MeView }) {
  const t = useT();
  const [erasing, setErasing] = useState(false);
  return (
    <Part title={t("account.data")} about={t("account.dataAbout")}>
      <div className={styles["buttons"]}>
        <a className={styles["link"]} href={EXPORT} download>
          <Icon name="download" size={16} />
          {t("account.export")}
        </a>
        <Button onClick={() => setErasing(true)}>{t("account.erase")}</Button>
      </div>
      <Dialog open={erasing} onClose={() => setErasing(false)} title={t("account.eraseTitle")}>
        <Erase user={user} onClose={() => setErasing(false)} />
      </Dialog>
    </Part>
  );
}

/** Asks for the name, and for the password of who has one, before what cannot be undone. */
function Erase({ user, onClose }: { user: MeView; onClose: () => void }) {
  const t = useT();
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const erase = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const password = new FormData(event.currentTarget).get("password");
    setBusy(true);
    setWrong(null);
    try {
      await eraseMe(typeof password === "string" ? password : null);
      forgetUser();
      leaveTo(LOGIN);
    } catch (error) {
      setWrong(failure(error));
      setBusy(false);
    }
  };
  return (
    <form className={styles["dialog"]} onSubmit={(event) => void erase(event)}>
      <p>{t("account.eraseAbout")}</p>
      <Field label={t("account.eraseName", { name: user.name })}>
        {(given) => (
          <input
            {...given}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      {user.has_password && <PasswordField label={t("login.password")} name="password" />}
      {wrong !== null && (
        <p role="alert" className={styles["wrong"]}>
          {wrong}
        </p>
      )}
      <div className={styles["end"]}>
        <Button onClick={onClose}>{t("settings.cancel")}</Button>
        <Button type="submit" kind="danger" disabled={busy || name.trim() !== user.name}>
          {t("account.eraseNow")}
        </Button>
      </div>
    </form>
  );
}
