import { type FormEvent, useState } from "react";
import { changeUser } from "../api/administration";
import type { AccountView } from "../api/types";
import { BudgetFields } from "../account/BudgetFields";
import forms from "../account/Forms.module.css";
import { budgetOf } from "../account/budget";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, Dialog } from "../ui";
import { refreshUsers } from "./refresh";

interface BudgetProps {
  user: AccountView;
  open: boolean;
  onClose: () => void;
}

/** What a user may spend in each period. */
export function Budget({ user, open, onClose }: BudgetProps) {
  const t = useT();
  const [wrong, setWrong] = useState<string | null>(null);
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    try {
      await changeUser(user.id, { budget: budgetOf(new FormData(event.currentTarget)) });
      onClose();
    } catch (error) {
      setWrong(sentence(error));
    }
    await refreshUsers();
  };
  return (
    <Dialog open={open} onClose={onClose} title={t("team.budgetOf", { name: user.display || user.name })}>
      <form className={forms["dialog"]} onSubmit={(event) => void save(event)}>
        <p className={forms["note"]}>{t("team.budgetAbout")}</p>
        <BudgetFields budget={user.budget} label={t("account.budget")} />
        {wrong !== null && (
          <p role="alert" className={forms["wrong"]}>
            {wrong}
          </p>
        )}
        <div className={forms["end"]}>
          <Button onClick={onClose}>{t("settings.cancel")}</Button>
          <Button type="submit" kind="primary">
            {t("account.save")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
