import { useQuery } from "@tanstack/react-query";
import * as catalog from "../api/catalog";
import { models } from "../api/models";
import type { CatalogItem } from "../api/types";
import { useT } from "../i18n";
import styles from "./Catalog.module.css";
import { textAt, textsAt, useForm } from "./draft";
import { SourceField } from "./SourceField";
import { Amount, Flag, Picks, Text } from "./fields";

/** The fields of an agent. `self` is its name: it does not ask itself. */
export function AgentForm({ self }: { self: string }) {
  const t = useT();
  return (
    <>
      <Text path="description" label={t("catalog.description")} hint={t("catalog.descriptionAgent")} />
      <Text path="system_prompt" label={t("catalog.prompt")} hint={t("catalog.promptHint")} rows={8} />
      <Flag path="is_active" label={t("catalog.activeAgent")} standard />
      <Abilities self={self} />
      <ModelPart />
    </>
  );
}

const noteOf = ({ definition }: CatalogItem) => textAt(definition ?? {}, "description") || undefined;

function Abilities({ self }: { self: string }) {
  const t = useT();
  const { definition } = useForm();
  const skills = useQuery({
    queryKey: ["catalog", "skills"],
    queryFn: ({ signal }) => catalog.definitions("skills", signal),
  });
  const agents = useQuery({
    queryKey: ["catalog", "agents"],
    queryFn: ({ signal }) => catalog.definitions("agents", signal),
  });
  const chosen = new Set(textsAt(definition, "skills"));
  const tools = (skills.data?.items ?? []).filter((each) => chosen.has(each.name)).flatMap((each) => toolsOf(each));
  return (
    <fieldset className={styles["group"]}>
      <legend className={styles["legend"]}>{t("catalog.can")}</legend>
      <Picks
        path="skills"
        label={t("catalog.skills")}
        none={t("catalog.noOthers")}
        options={(skills.data?.items ?? []).map((each) => ({ name: each.name, note: noteOf(each) }))}
      />
      {tools.length > 0 && (
        <p className={styles["hint"]}>{t("catalog.toolsOf", { names: [...new Set(tools)].join(", ") })}</p>
      )}
      <Picks
        path="sub_agents"
        label={t("catalog.subAgents")}
        none={t("catalog.noOthers")}
        options={(agents.data?.items ?? [])
          .filter((each) => each.name !== self)
          .map((each) => ({ name: each.name, note: noteOf(each) }))}
      />
      <SourceField
        path="config.source"
        label={t("catalog.source")}
        hint={t("catalog.sourceHint")}
        none={t("catalog.sourceAny")}
      />
    </fieldset>
  );
}

function toolsOf({ definition }: CatalogItem): string[] {
  const tools = definition?.["tools"];
  return (Array.isArray(tools) ? tools : [])
    .map((each) => (typeof each === "string" ? each : textAt({ each }, "each.tool")))
    .filter(Boolean);
}

function ModelPart() {
  const t = useT();
  const known = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => models(signal), staleTime: 30_000 });
  const names = (known.data?.models ?? []).map((each) => each.name);
  return (
    <fieldset className={styles["group"]}>
      <legend className={styles["legend"]}>{t("catalog.modelPart")}</legend>
      <Text path="config.model" label={t("catalog.model")} hint={t("catalog.modelHint")} list={names} />
      <Text path="config.fallback_model" label={t("catalog.fallback")} list={names} />
      <div className={styles["amounts"]}>
        <Amount path="config.temperature" label={t("catalog.temperature")} step={0.1} />
        <Amount path="config.max_tokens" label={t("catalog.maxTokens")} />
        <Amount path="config.max_steps" label={t("catalog.maxSteps")} />
        <Amount path="config.timeout_seconds" label={t("catalog.timeout")} />
        <Amount path="config.retry_attempts" label={t("catalog.retries")} />
      </div>
    </fieldset>
  );
}
