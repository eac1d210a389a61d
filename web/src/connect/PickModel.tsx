import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { checkModel } from "../api/models";
import type { ModelChecked } from "../api/types";
import { chooseModel } from "../chat/model";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button } from "../ui";
import type { Found } from "./Connect";
import styles from "./Connect.module.css";
import { Field } from "./ConnectForm";

/** So many are drawn; the others are found by their names. */
const SHOWN = 100;

interface PickModelProps {
  found: Found;
  thread: string | null;
  onBack: () => void;
  onDone: (checked: ModelChecked) => void;
}

/** One of the models that were found, or one that is named. It is asked a question before it is chosen. */
export function PickModel({ found: { title, names, prefix, store }, thread, onBack, onDone }: PickModelProps) {
  const t = useT();
  const [text, setText] = useState("");
  const [picked, setPicked] = useState<string | null>(names?.length === 1 ? (names[0] ?? null) : null);
  const wanted = text.trim();
  const matching = (names ?? []).filter((name) => name.toLowerCase().includes(wanted.toLowerCase()));
  const unlisted = wanted && !(names ?? []).some((name) => name === prefix + wanted) ? prefix + wanted : null;
  const offered = [...matching.slice(0, SHOWN), ...(unlisted ? [unlisted] : [])];
  const model = picked !== null && offered.includes(picked) ? picked : offered.length === 1 ? offered[0] : undefined;
  const use = useMutation({
    mutationFn: async (name: string) => {
      await store?.();
      const checked = await checkModel(name);
      chooseModel(thread, name);
      onDone(checked);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (model !== undefined) use.mutate(model);
  };
  return (
    <form className={styles["steps"]} onSubmit={submit}>
      <h3 className={styles["heading"]}>{title}</h3>
      <p className={styles["about"]} role="status">
        {names === null ? t("connect.noList") : t("connect.listed", { n: names.length })}
      </p>
      <Field label={t("connect.find")} hint={t("connect.findHint")} value={text} onValue={setText} autoFocus />
      {offered.length > 0 && (
        <Offered names={offered} prefix={prefix} unlisted={unlisted} picked={model} onPick={setPicked} />
      )}
      {matching.length > SHOWN && (
        <p className={styles["about"]}>{t("connect.more", { n: matching.length - SHOWN })}</p>
      )}
      {use.error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(use.error)}
        </p>
      )}
      <div className={styles["buttons"]}>
        <Button disabled={use.isPending} onClick={onBack}>
          {t("connect.back")}
        </Button>
        <Button type="submit" kind="primary" disabled={use.isPending || model === undefined}>
          {t(use.isPending ? "connect.asking" : "connect.use")}
        </Button>
      </div>
    </form>
  );
}

interface OfferedProps {
  names: string[];
  prefix: string;
  unlisted: string | null;
  picked: string | undefined;
  onPick: (name: string) => void;
}

function Offered({ names, prefix, unlisted, picked, onPick }: OfferedProps) {
  const t = useT();
  const group = useId();
  return (
    <div role="radiogroup" aria-label={t("connect.pick")} className={styles["offered"]}>
      {names.map((name) => (
        <label key={name} className={styles["model"]}>
          <input type="radio" name={group} value={name} checked={name === picked} onChange={() => onPick(name)} />
          <span>
            {name === unlisted ? t("connect.unlisted", { name: name.slice(prefix.length) }) : name.slice(prefix.length)}
          </span>
        </label>
      ))}
    </div>
  );
}
