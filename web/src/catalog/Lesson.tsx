import { type FormEvent, type ReactNode, useState } from "react";
import type { JsonObject, TermsBody } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, IconButton, say } from "../ui";
import styles from "./Catalog.module.css";
import { Guard } from "./Guard";
import { FormContext } from "./draft";
import { teach, useTeach } from "./useTeach";

interface LessonProps {
  source: string;
  /** The term, or the question of the example. */
  name: string;
  before: JsonObject;
  change: (written: JsonObject) => TermsBody;
  /** What takes it away, and what brings it back. */
  remove: TermsBody;
  restore: TermsBody;
  changeable: boolean;
  /** Its fields while it is written. */
  fields: ReactNode;
  children: ReactNode;
}

/** A term or an example, which can be changed in its place and removed. */
export function Lesson({ source, name, before, change, remove, restore, changeable, fields, children }: LessonProps) {
  const t = useT();
  const [editing, setEditing] = useState(false);
  const drop = async () => {
    try {
      await teach(source, remove);
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
      return;
    }
    const undo = async () => {
      await teach(source, restore);
      return t("list.restored", { label: name });
    };
    say({ text: t("terms.removed", { name }), action: { label: t("list.undo"), do: undo } });
  };
  if (editing) {
    return (
      <li className={styles["card"]}>
        <LessonForm source={source} name={name} before={before} change={change} onDone={() => setEditing(false)}>
          {fields}
        </LessonForm>
      </li>
    );
  }
  return (
    <li className={styles["card"]}>
      <div className={styles["lesson"]}>{children}</div>
      {changeable && (
        <>
          <IconButton icon="edit" label={t("terms.edit", { name })} onClick={() => setEditing(true)} />
          <IconButton icon="trash" label={t("settings.removeSource", { name })} onClick={() => void drop()} />
        </>
      )}
    </li>
  );
}

interface LessonFormProps {
  source: string;
  name: string;
  before: JsonObject;
  change: (written: JsonObject) => TermsBody;
  onDone: () => void;
  children: ReactNode;
}

/** Writes a term or an example. What is wrong with it is said beside its fields, and nothing is lost. */
export function LessonForm({ source, name, before, change, onDone, children }: LessonFormProps) {
  const t = useT();
  const { form, failure, busy, dirty, save } = useTeach(source, before, change, onDone);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!busy) void save();
  };
  return (
    <FormContext value={form}>
      <form className={styles["form"]} aria-label={name} onSubmit={submit} noValidate>
        <fieldset disabled={busy} className={styles["fields"]}>
          {children}
        </fieldset>
        {failure !== null && (
          <p role="alert" className={styles["failure"]}>
            {failure}
          </p>
        )}
        <div className={styles["buttons"]}>
          <Button onClick={onDone}>{t("settings.cancel")}</Button>
          <Button type="submit" kind="primary" disabled={!dirty || busy}>
            {t("catalog.save")}
          </Button>
        </div>
      </form>
      <Guard dirty={dirty} name={name} onDiscard={onDone} />
    </FormContext>
  );
}
