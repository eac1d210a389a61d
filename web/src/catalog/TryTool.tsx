import { type FormEvent, useId, useState } from "react";
import * as api from "../api/catalog";
import { useSources } from "../api/server";
import type { CatalogItem, JsonObject, ObservationView, ToolTypeView } from "../api/types";
import { RowsTable } from "../chat/RowsTable";
import { asJson } from "../chat/visible";
import { useT } from "../i18n";
import { duration } from "../i18n/format";
import { fieldsOf, sentence, told } from "../i18n/sentence";
import { Note, Part } from "../settings/parts";
import { Button } from "../ui";
import { Arguments } from "./Arguments";
import styles from "./Catalog.module.css";
import { at, objectAt, textAt } from "./draft";
import { typeName } from "./words";

/** The built-in tools that need no conversation. */
const ALONE = new Set(["list_tables", "describe_table", "sample_rows", "run_sql", "query_metric"]);

interface TryToolProps {
  /** What is stored; null: nothing yet. */
  item: CatalogItem | null;
  name: string;
  definition: JsonObject;
  dirty: boolean;
  types: readonly ToolTypeView[];
}

/** Calls a tool as it stands in the form, saved or not. */
export function TryTool({ item, name, definition, dirty, types }: TryToolProps) {
  const t = useT();
  const isBuiltIn = item?.is_builtin ?? false;
  if (isBuiltIn && !ALONE.has(textAt(definition, "schema.name") || name)) {
    return (
      <Part title={t("catalog.try")}>
        <Note>{t("catalog.conversationTool")}</Note>
      </Part>
    );
  }
  return (
    <Part title={t("catalog.try")} about={t(dirty ? "catalog.tryDraft" : "catalog.tryAbout")}>
      <Trial
        isBuiltIn={isBuiltIn}
        name={item !== null && !dirty ? item.name : name}
        definition={definition}
        draft={dirty}
        types={types}
      />
    </Part>
  );
}

interface TrialProps {
  isBuiltIn: boolean;
  name: string;
  definition: JsonObject;
  draft: boolean;
  types: readonly ToolTypeView[];
}

type Outcome = { observation: ObservationView; took: number } | { failure: string };

function useTrial({ isBuiltIn, name, definition, draft }: TrialProps) {
  const [args, setArgs] = useState<JsonObject | null>({});
  const [source, setSource] = useState("demo");
  const [named, setNamed] = useState("");
  const [approved, setApproved] = useState(false);
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const call = async () => {
    if (args === null) return;
    setBusy(true);
    const began = performance.now();
    try {
      const more = {
        ...(isBuiltIn ? { source } : {}),
        ...(approved ? { approve: true } : {}),
        ...(draft && !named ? { definition } : {}),
      };
      const { observation } = await api.tryTool(named || name, { args, ...more });
      setOutcome({ observation, took: performance.now() - began });
    } catch (error) {
      const fields = Object.entries(fieldsOf(error));
      setOutcome({
        failure: fields.length ? fields.map(([field, text]) => `${field}: ${text}`).join("\n") : sentence(error),
      });
    } finally {
      setBusy(false);
    }
  };
  return { args, setArgs, source, setSource, named, setNamed, approved, setApproved, busy, outcome, call };
}

function Trial(props: TrialProps) {
  const t = useT();
  const trial = useTrial(props);
  const { definition, isBuiltIn, name, types } = props;
  const needsApproval = at(definition, "implementation.approve") === true;
  const type = types.find((each) => each.name === typeName(definition));
  const hasSeveral = type?.serves_tools === true && !textAt(definition, "implementation.tool_name");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!trial.busy) void trial.call();
  };
  return (
    <form className={styles["trial"]} onSubmit={submit}>
      {isBuiltIn && <SourceToAsk value={trial.source} onChange={trial.setSource} />}
      {hasSeveral && <Named value={trial.named} onChange={trial.setNamed} />}
      <Arguments parameters={objectAt(definition, "schema.parameters")} onChange={trial.setArgs} open={hasSeveral} />
      <div className={styles["call"]}>
        {needsApproval && (
          <label className={styles["flag"]}>
            <input
              type="checkbox"
              checked={trial.approved}
              onChange={(event) => trial.setApproved(event.target.checked)}
            />
            {t("catalog.approveCall")}
          </label>
        )}
        <Button
          type="submit"
          disabled={trial.busy || trial.args === null || name === "" || (needsApproval && !trial.approved)}
        >
          {t(trial.busy ? "catalog.calling" : "catalog.call")}
        </Button>
      </div>
      {trial.outcome && <Told outcome={trial.outcome} />}
    </form>
  );
}

function SourceToAsk({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const t = useT();
  const id = useId();
  const found = useSources();
  return (
    <div className={styles["field"]}>
      <label htmlFor={id} className={styles["label"]}>
        {t("catalog.sourceToAsk")}
      </label>
      <select id={id} className={styles["input"]} value={value} onChange={(event) => onChange(event.target.value)}>
        {(found.data?.sources ?? [{ name: "demo" }]).map((each) => (
          <option key={each.name}>{each.name}</option>
        ))}
      </select>
    </div>
  );
}

function Named({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const t = useT();
  const id = useId();
  return (
    <div className={styles["field"]}>
      <label htmlFor={id} className={styles["label"]}>
        {t("catalog.tryNamed")}
      </label>
      <input
        id={id}
        className={styles["input"]}
        spellCheck={false}
        autoComplete="off"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}

function Told({ outcome }: { outcome: Outcome }) {
  const t = useT();
  if ("failure" in outcome) {
    return (
      <p role="alert" className={styles["failure"]}>
        {outcome.failure}
      </p>
    );
  }
  const { observation, took } = outcome;
  const { rows, columns, ...rest } = (observation.data ?? {}) as JsonObject;
  const isTable = Array.isArray(rows) && Array.isArray(columns);
  return (
    <section role="status" className={styles["result"]} aria-label={t("catalog.result")}>
      <p className={styles["label"]}>
        {t(observation.ok ? "catalog.result" : "catalog.failed")}{" "}
        <span className={styles["facts"]}>{duration(took)}</span>
      </p>
      {observation.error && <p className={styles["failure"]}>{told(observation.error)}</p>}
      {isTable && <RowsTable columns={columns.map(String)} rows={rows as unknown[][]} />}
      {observation.data && (
        <pre className={styles["pre"]} tabIndex={0} aria-label={t("catalog.json")}>
          {asJson(isTable ? rest : observation.data)}
        </pre>
      )}
    </section>
  );
}
