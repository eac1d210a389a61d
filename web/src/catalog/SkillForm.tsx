import { useQuery } from "@tanstack/react-query";
import * as catalog from "../api/catalog";
import { useT } from "../i18n";
import styles from "./Catalog.module.css";
import { objectAt, textAt, useForm } from "./draft";
import { Words } from "./Words";
import { Flag, Picks, Text } from "./fields";

/** The fields of a skill. */
export function SkillForm() {
  const t = useT();
  const { definition } = useForm();
  const tools = useQuery({
    queryKey: ["catalog", "tools"],
    queryFn: ({ signal }) => catalog.definitions("tools", signal),
  });
  const files = Object.keys(objectAt(definition, "config.files")).length;
  return (
    <>
      <Text path="description" label={t("catalog.description")} />
      <Text
        path="config.instructions"
        label={t("catalog.instructions")}
        hint={t("catalog.instructionsHint")}
        rows={10}
      />
      {files > 0 && <p className={styles["hint"]}>{t("catalog.files", { n: files })}</p>}
      <Flag path="config.always" label={t("catalog.always")} />
      <Words path="trigger_keywords" label={t("catalog.keywords")} hint={t("catalog.keywordsHint")} />
      <Picks
        path="tools"
        label={t("catalog.tools")}
        none={t("catalog.none.tools")}
        options={(tools.data?.items ?? []).map((each) => ({
          name: each.name,
          note: textAt(each.definition ?? {}, "description") || undefined,
        }))}
      />
    </>
  );
}
