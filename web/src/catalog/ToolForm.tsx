import type { CatalogItem, JsonObject } from "../api/types";
import { type MessageId, useT } from "../i18n";
import { Note } from "../settings/parts";
import styles from "./Catalog.module.css";
import { SourceField } from "./SourceField";
import { objectAt, textAt, useForm, wrongAt } from "./draft";
import { Flag, ObjectText, OneOf, Text } from "./fields";
import type { ToolType } from "./words";

/** The kinds that the page makes. */
const MADE = ["query", "api", "mcp"] as const;
type Made = (typeof MADE)[number];

interface ToolFormProps {
  power: CatalogItem["power"];
  isNew: boolean;
  name: string;
}

/** The fields of a tool: what the model reads, and how it works. */
export function ToolForm({ power, isNew, name }: ToolFormProps) {
  const t = useT();
  const { definition, set } = useForm();
  const type = (textAt(definition, "type") || "builtin") as ToolType;
  const parameters = objectAt(definition, "schema.parameters");
  return (
    <>
      {isNew && (
        <>
          <OneOf
            path="type"
            label={t("catalog.type")}
            onChange={() => set("implementation", undefined)}
            options={MADE.map((value) => ({ value, label: t(`catalog.type.${value}`) }))}
          />
          <Note>{t("catalog.commandLine")}</Note>
        </>
      )}
      <Text path="description" label={t("catalog.description")} hint={t("catalog.descriptionTool")} rows={2} />
      <Text
        path="schema.name"
        label={t("catalog.function")}
        hint={t("catalog.functionHint")}
        list={/^[\w-]{1,64}$/.test(name) ? [name] : []}
      />
      {type === "builtin" ? (
        <div className={styles["field"]}>
          <span className={styles["label"]}>{t("catalog.parameters")}</span>
          <pre className={styles["pre"]} tabIndex={0} role="group" aria-label={t("catalog.parameters")}>
            {JSON.stringify(parameters, null, 2)}
          </pre>
        </div>
      ) : (
        <ObjectText
          path="schema.parameters"
          label={t("catalog.parameters")}
          {...(type === "mcp" ? { hint: t("catalog.parametersMcp") } : {})}
          rows={8}
          value={parameters}
          onChange={(value) => set("schema.parameters", Object.keys(value).length ? value : undefined)}
        />
      )}
      <Flag path="is_active" label={t("catalog.active")} standard />
      {type !== "builtin" && <Implementation type={type} power={power} />}
    </>
  );
}

function Implementation({ type, power }: { type: ToolType; power: CatalogItem["power"] }) {
  const t = useT();
  const { definition, wrong } = useForm();
  const problem = wrongAt(wrong, "implementation", { alone: true });
  const isMade = MADE.some((each) => each === type);
  return (
    <fieldset className={styles["group"]} aria-describedby={problem && "implementation-wrong"}>
      <legend className={styles["legend"]}>{t("catalog.implementation")}</legend>
      {problem && (
        <p id="implementation-wrong" className={styles["wrong"]} tabIndex={-1} data-invalid>
          {problem}
        </p>
      )}
      {power !== null || !isMade ? (
        <>
          <Note>{t(`catalog.power.${power ?? "code"}`)}</Note>
          <pre className={styles["pre"]} tabIndex={0} aria-label={t("catalog.implementation")}>
            {JSON.stringify(definition["implementation"] ?? {}, null, 2)}
          </pre>
        </>
      ) : (
        <Parts key={type} type={type as Made} />
      )}
    </fieldset>
  );
}

/** The fields of an implementation that have fields of their own here. */
const OWN: Record<Made, readonly string[]> = {
  query: ["database", "sql_template"],
  api: ["endpoint", "method"],
  mcp: ["url", "tool_name"],
};
const MORE: Record<Made, MessageId> = { query: "catalog.moreQuery", api: "catalog.moreApi", mcp: "catalog.moreMcp" };
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

function Parts({ type }: { type: Made }) {
  const t = useT();
  const { definition, set } = useForm();
  const implementation = objectAt(definition, "implementation");
  const own = new Set([...OWN[type], "approve", "type"]);
  const split = (isOwn: boolean): JsonObject =>
    Object.fromEntries(Object.entries(implementation).filter(([key]) => own.has(key) === isOwn));
  return (
    <>
      {type === "query" && <Query />}
      {type === "api" && (
        <>
          <Text path="implementation.endpoint" label={t("catalog.endpoint")} hint={t("catalog.endpointHint")} code />
          <OneOf
            path="implementation.method"
            label={t("catalog.method")}
            none={t("catalog.methodDefault")}
            options={METHODS.map((value) => ({ value, label: value }))}
          />
        </>
      )}
      {type === "mcp" && (
        <>
          <Text path="implementation.url" label={t("catalog.url")} code />
          <Text path="implementation.tool_name" label={t("catalog.toolName")} hint={t("catalog.toolNameHint")} />
        </>
      )}
      <ObjectText
        path="implementation.more"
        label={t("catalog.more")}
        hint={t(MORE[type])}
        rows={4}
        value={split(false)}
        onChange={(value) => set("implementation", { ...split(true), ...value })}
      />
      <Flag path="implementation.approve" label={t("catalog.approve")} />
    </>
  );
}

function Query() {
  const t = useT();
  return (
    <>
      <SourceField
        path="implementation.database"
        label={t("catalog.database")}
        hint={t("catalog.noSources")}
        none={t("catalog.chooseSource")}
      />
      <Text path="implementation.sql_template" label={t("catalog.sql")} hint={t("catalog.sqlHint")} rows={6} code />
    </>
  );
}
