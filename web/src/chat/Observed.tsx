import { formatsOfJson } from "../formats/chosen";
import { useT } from "../i18n";
import { told } from "../i18n/sentence";
import { isOfWaiting, isRejected } from "../stream/steps";
import type { Decided, Step } from "../stream/types";
import { CodeBlock, Markdown } from "./Markdown";
import styles from "./Observed.module.css";
import { RowsTable } from "./RowsTable";
import { rowsOf } from "./stepText";
import { asJson, visible } from "./visible";

interface ObservedProps {
  threadId: string;
  step: Step;
  decided: readonly Decided[];
}

/** Actions whose arguments are in their titles, or are shown as SQL. */
const KNOWN = new Set(["list_tables", "describe_table", "sample_rows", "run_sql", "json_parse_error", "chart"]);

/** What a step was made with, and what came out of it. Everything from a database or a model is text, never markup. */
export function Observed({ threadId, step, decided }: ObservedProps) {
  const t = useT();
  const task = step.asked && typeof step.args["task"] === "string" ? step.args["task"] : null;
  const showsArgs = task === null && !KNOWN.has(step.action) && Object.keys(step.args).length > 0;
  const notes = Array.isArray(step.observation?.data?.notes) ? step.observation.data.notes : [];
  return (
    <div className={styles["observed"]}>
      {step.sql !== undefined && (
        <CodeBlock
          code={step.sql}
          language="sql"
          fallback={
            <pre tabIndex={0} className={styles["code"]}>
              <code>{step.sql}</code>
            </pre>
          }
        />
      )}
      {task !== null && (
        <p dir="auto" className={styles["task"]}>
          {visible(task)}
        </p>
      )}
      {showsArgs && (
        <>
          <p className={styles["note"]}>{t("chat.arguments")}</p>
          <pre tabIndex={0} aria-label={t("chat.arguments")} className={styles["code"]}>
            {asJson(step.args)}
          </pre>
        </>
      )}
      <Result threadId={threadId} step={step} decided={decided} />
      {notes.map((note, place) => (
        <p key={place} className={styles["note"]}>
          {String(note)}
        </p>
      ))}
    </div>
  );
}

function Result({ step, decided }: ObservedProps) {
  const t = useT();
  const { observation } = step;
  if (observation === null) return null;
  const data = observation.data ?? {};
  if (isRejected(step, decided))
    return <p className={styles["wrong"]}>{reasonOf(step, decided) || t("chat.rejectedPlain")}</p>;
  if (isOfWaiting(step)) return <p className={styles["note"]}>{t("chat.agentWaited")}</p>;
  if (observation.error) return <p className={styles["wrong"]}>{told(observation.error)}</p>;
  if (step.chart) return null;
  if (step.action === "list_tables" && Array.isArray(data.tables))
    return <Tables names={data.tables} about={data["about"]} />;
  if (step.action === "describe_table" && Array.isArray(data.columns))
    return <Columns columns={data.columns as Column[]} />;
  if (step.columns && step.rows)
    return <RowsTable columns={step.columns} rows={step.rows} formats={formatsOfJson(data["formats"])} />;
  if (Array.isArray(data.rows) && Array.isArray(data.columns))
    return <RowsTable columns={data.columns.map(String)} rows={data.rows as unknown[][]} />;
  if (step.asked && typeof data.answer === "string") return <Markdown text={data.answer} />;
  const { edited: _, ...rest } = observation;
  return (
    <pre tabIndex={0} aria-label={t("chat.result")} className={styles["code"]}>
      {asJson(rest)}
    </pre>
  );
}

function reasonOf(step: Step, decided: readonly Decided[]): string {
  const reason = decided.find((each) => each.id === step.callId)?.message;
  return reason ? visible(reason) : "";
}

function Tables({ names, about }: { names: unknown[]; about: unknown }) {
  const known = (about ?? {}) as Record<string, { rows?: unknown; comment?: string } | undefined>;
  return (
    <ul className={styles["chips"]}>
      {names
        .slice(0, 300)
        .map(String)
        .map((name) => (
          <li key={name} title={known[name]?.comment}>
            {name} {known[name]?.comment && <span>{known[name].comment}</span>} <span>{rowsOf(known[name]?.rows)}</span>
          </li>
        ))}
    </ul>
  );
}

interface Column {
  name: string;
  type: string;
  primary_key?: boolean;
  comment?: string;
  values?: unknown[];
  min?: unknown;
  max?: unknown;
}

function Columns({ columns }: { columns: readonly Column[] }) {
  const t = useT();
  const rows = columns.map((column) => [
    column.primary_key ? `${column.name} · ${t("chat.key")}` : column.name,
    column.type,
    aboutOf(column),
  ]);
  return <RowsTable columns={[t("chat.column.name"), t("chat.column.type"), t("chat.column.about")]} rows={rows} />;
}

function aboutOf({ comment, values, min, max }: Column): string {
  const range = values
    ? values.slice(0, 8).map(String).join(", ") + (values.length > 8 ? " …" : "")
    : min === undefined
      ? ""
      : `${String(min)} – ${String(max)}`;
  return [comment, range].filter(Boolean).join(" · ");
}
