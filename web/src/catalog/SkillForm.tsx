import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as catalog from "../api/catalog";
import { useT } from "../i18n";
import styles from "./Catalog.module.css";
import { objectAt, textAt, textsAt, useForm } from "./draft";
import { Field, Flag, Picks, Text } from "./fields";

/** The fields of a skill. */
export function SkillForm() {
  const t = useT();
  const { definition } = useForm();
  const tools = useQuery({ queryKey: ["catalog", "tools"], queryFn: ({ signal }) => catalog.definitions("tools", signal) });
  const files = Object.keys(objectAt(definition, "config.files")).length;
  return (
    <>
      <Text path="description" label={t("catalog.description")} />
      <Text path="config.instructions" label={t("catalog.instructions")} hint={t("catalog.instructionsHint")} rows={10} />
      {files > 0 && <p className={styles["hint"]}>{t("catalog.files", { n: files })}</p>}
      <Flag path="config.always" label={t("catalog.always")} />
      <Keywords />
      <Picks
        path="tools"
        label={t("catalog.tools")}
        none={t("catalog.none.tools")}
        options={(tools.data?.items ?? []).map((each) => ({ name: each.name, note: textAt(each.definition ?? {}, "description") || undefined }))}
      />
    </>
  );
}

const SEPARATOR = /[,，、\n]/;

/** Texts in one field. What is typed stays as it is until the page is left. */
function Keywords() {
  const t = useT();
  const { definition, set } = useForm();
  const [text, setText] = useState(() => textsAt(definition, "trigger_keywords").join(", "));
  const change = (next: string) => {
    setText(next);
    const words = [...new Set(next.split(SEPARATOR).map((each) => each.trim()).filter(Boolean))];
    set("trigger_keywords", words.length ? words : undefined);
  };
  return (
    <Field path="trigger_keywords" label={t("catalog.keywords")} hint={t("catalog.keywordsHint")}>
      {(given) => <input {...given} className={styles["input"]} dir="auto" autoComplete="off" value={text} onChange={(event) => change(event.target.value)} />}
    </Field>
  );
}
