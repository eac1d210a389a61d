import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { makeKey } from "../api/keys";
import { models } from "../api/models";
import { useAgents, useSources } from "../api/server";
import type { ApiKeyBody, NewApiKeyView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button } from "../ui";
import { Field } from "../ui/Field";
import { BudgetFields } from "./BudgetFields";
import styles from "./Forms.module.css";
import { DAYS, SCOPES, keyOf } from "./keyForm";

interface NewKeyProps {
  isAdmin: boolean;
  onMade: (key: NewApiKeyView) => void;
  onCancel: () => void;
}

/** What a new key is for, and what it is limited to. */
export function NewKey({ isAdmin, onMade, onCancel }: NewKeyProps) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const body: ApiKeyBody = keyOf(new FormData(event.currentTarget), Date.now());
    if (body.scopes.length === 0) return setWrong(t("account.scopeMissing"));
    setBusy(true);
    setWrong(null);
    try {
      onMade(await makeKey(body));
    } catch (error) {
      setWrong(sentence(error));
      setBusy(false);
    }
  };
  return (
    <form className={styles["box"]} onSubmit={(event) => void make(event)}>
      <div className={styles["row"]}>
        <Field label={t("account.keyName")} hint={t("account.keyNameHint")}>
          {(given) => <input {...given} name="name" required maxLength={200} autoComplete="off" autoFocus dir="auto" />}
        </Field>
        <Field label={t("account.expires")}>
          {(given) => (
            <select {...given} name="days" defaultValue="90">
              {DAYS.map((days) => (
                <option key={days} value={days}>
                  {days ? t("account.inDays", { n: days }) : t("account.never")}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <fieldset className={styles["picks"]}>
        <legend>{t("account.scopes")}</legend>
        {SCOPES.filter((scope) => isAdmin || scope !== "admin").map((scope) => (
          <label key={scope} className={styles["check"]}>
            <input type="checkbox" name="scope" value={scope} defaultChecked={scope === "chat"} />
            <span>
              {t(`account.scope.${scope}`)}
              <small>{t(`account.scopeAbout.${scope}`)}</small>
            </span>
          </label>
        ))}
      </fieldset>
      {/* What is folded away is sent, too. */}
      <details>
        <summary className={styles["fold"]}>{t("account.limits")}</summary>
        <Limits />
      </details>
      {wrong !== null && (
        <p role="alert" className={styles["wrong"]}>
          {wrong}
        </p>
      )}
      <div className={styles["end"]}>
        <Button kind="quiet" onClick={onCancel}>
          {t("settings.cancel")}
        </Button>
        <Button type="submit" kind="primary" disabled={busy}>
          {t("account.keyMake")}
        </Button>
      </div>
    </form>
  );
}

function Limits() {
  const t = useT();
  const agents = useAgents().data ?? [];
  const sources = useSources().data?.sources ?? [];
  const known = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => models(signal), staleTime: 30_000 });
  const names = (known.data?.models ?? []).map(({ name }) => name);
  return (
    <div className={styles["wide"]}>
      <p className={styles["note"]}>{t("account.limitsAbout")}</p>
      <Some name="agents" label={t("settings.page.agents")} options={agents.map(({ name }) => name)} />
      <Some name="sources" label={t("settings.sources")} options={sources.map(({ name }) => name)} />
      <Field label={t("settings.models")} hint={t("account.modelsHint")}>
        {(given) => (
          <input
            {...given}
            name="models"
            autoComplete="off"
            spellCheck={false}
            placeholder={names.slice(0, 2).join(", ")}
          />
        )}
      </Field>
      <BudgetFields label={t("account.budget")} />
      <div className={styles["row"]}>
        {(["requests_per_minute", "parallel"] as const).map((name) => (
          <Field key={name} label={t(`account.limit.${name}`)}>
            {(given) => <input {...given} name={name} type="number" min={1} step={1} autoComplete="off" />}
          </Field>
        ))}
      </div>
    </div>
  );
}

/** Some of what there is; none chosen: no limit. */
function Some({ name, label, options }: { name: string; label: string; options: readonly string[] }) {
  if (options.length === 0) return null;
  return (
    <fieldset className={styles["checks"]}>
      <legend>{label}</legend>
      {options.map((option) => (
        <label key={option} className={styles["check"]}>
          <input type="checkbox" name={name} value={option} />
          <span dir="auto">{option}</span>
        </label>
      ))}
    </fieldset>
  );
}
