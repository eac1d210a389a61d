// One step of a run: what was done, with what, and what came out.

import * as api from "./api.js";
import { visible } from "./approval.js";
import { answerOf, linkBelow } from "./below.js";
import { codeBlock } from "./code.js";
import { el } from "./dom.js";
import { sentence } from "./errors.js";
import { duration, number, t } from "./i18n.js";
import { markdown } from "./markdown.js";
import { sqlNodes } from "./sql.js";
import { resultTable } from "./table.js";

export class StepView {
  /** `step` is a step of the history, or the beginning of one from the stream. */
  constructor(step, threadId) {
    this.step = step;
    this.threadId = threadId;
    this.title = el("span.step-title");
    this.found = el("span.step-found");
    this.time = el("span.step-time");
    this.body = el("div.step-body");
    this.details = el("details", {}, el("summary", {}, this.title, this.found, this.time), this.body);
    this.below = el("div");
    this.node = el("li.step", {}, this.details, this.below);
    this.render();
  }

  /** What came out: `ok`, `observation`, `elapsed_ms`. */
  end(outcome) {
    Object.assign(this.step, outcome);
    this.render();
  }

  /** What a person has decided about this call. */
  decide(decision) {
    this.step.decision = decision;
    this.render();
  }

  /** The conversation of the agent that this call asks. */
  refer(asked) {
    this.step.asked = asked;
    this.render();
  }

  /** The run has ended while this step was under way. */
  abandon() {
    if (this.step.observation) return;
    this.step.status = "abandoned";
    this.render();
  }

  get query() {
    return this.step.observation?.data?.query ?? null;
  }

  reveal() {
    this.details.open = true;
    this.node.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    this.node.classList.remove("flash");
    requestAnimationFrame(() => this.node.classList.add("flash"));
    this.details.querySelector("summary").focus({ preventScroll: true });
  }

  render() {
    const { step } = this;
    const data = step.observation?.data ?? {};
    const under = !step.observation && step.status !== "abandoned";
    const asked = answerOf(step);
    this.node.dataset.state = under ? "running" : step.ok ? "ok" : isOfWaiting(step) ? "waits" : "failed";
    if (this.query) this.node.dataset.query = this.query;
    this.title.replaceChildren(title(step));
    const failed = step.observation && !step.ok && !isOfWaiting(step);
    this.found.textContent = isRejected(step) ? t("rejected") : failed ? t("failed") : found(step, data);
    this.time.textContent = step.elapsed_ms === null || step.elapsed_ms === undefined ? "" : duration(step.elapsed_ms);
    this.below.replaceChildren(...(asked ? [linkBelow(asked)] : []));
    this.body.replaceChildren(...this.parts(data, asked));
    if (!this.touched) this.details.open = step.action === "run_sql" || chartOf(step) !== null || Boolean(failed);
    this.details.querySelector("summary").onclick = () => (this.touched = true);
  }

  parts(data, asked) {
    const { step } = this;
    const parts = [];
    const isChart = chartOf(step) !== null;
    if (step.thought?.trim()) parts.push(el("p.thought", {}, step.thought.trim()));
    const sql = data.sql ?? step.args?.sql;
    if (typeof sql === "string" && sql.trim()) parts.push(sqlBlock(sql.trim()));
    if (asked && typeof step.args?.task === "string") parts.push(el("p.task", { dir: "auto" }, visible(step.args.task)));
    else if (!KNOWN.has(step.action) && !isChart && Object.keys(step.args ?? {}).length) parts.push(argumentsOf(step.args));
    const error = step.observation?.error;
    // What the model is told of it is not what a person has said.
    if (isChart) parts.push((this.chart ??= this.drawn()));
    else if (isRejected(step)) parts.push(el("p.wrong", { dir: "auto" }, rejection(step.decision.message)));
    else if (isOfWaiting(step)) parts.push(el("p.note", {}, t("agentWaited")));
    else if (error) parts.push(el("p.wrong", {}, sentence(error)));
    else if (step.action === "list_tables" && Array.isArray(data.tables)) parts.push(tablesOf(data));
    else if (step.action === "describe_table" && Array.isArray(data.columns)) parts.push(columnsOf(data));
    else if (asked && typeof data.answer === "string") parts.push(el("div.answer.said", { tabindex: 0 }, markdown(data.answer, plain)));
    else if (Array.isArray(data.rows)) parts.push(this.rows(data));
    else if (step.observation) parts.push(el("pre", { tabindex: 0 }, JSON.stringify(shown(step), null, 2).slice(0, 20_000)));
    for (const note of data.notes ?? []) parts.push(el("p.note", {}, String(note)));
    return parts.filter(Boolean);
  }

  drawn() {
    const place = el("div");
    import("./chart.js").then(
      ({ chartFigure }) => place.append(chartFigure(this.threadId, this.step, chartOf(this.step))),
      () => {
        const text = JSON.stringify(chartOf(this.step), null, 2);
        place.append(el("p.wrong", {}, t("chartFailed", { reason: t("offline") })), codeBlock(t("chartSpec"), text, [text]));
      },
    );
    return place;
  }

  rows(data) {
    const { threadId, step } = this;
    const more = step.cut && step.step !== null ? async () => (await api.step(threadId, step.step)).observation.data.rows : null;
    return resultTable(data.columns ?? [], data.rows, { caption: title(step), more });
  }
}

const KNOWN = new Set(["list_tables", "describe_table", "sample_rows", "run_sql", "json_parse_error"]);

/** The specification that a call of `chart` gave, without rows; null where it gave none. */
function chartOf(step) {
  const spec = step.action === "chart" ? step.observation?.data?.spec : null;
  return typeof spec?.data?.name === "string" ? spec : null;
}

/** A label of a query in what another agent has said: it is none of this conversation's. */
const plain = (query) => el("code", {}, query);

const isOfWaiting = (step) => step.observation?.error?.type === "agent_waits";

const isRejected = (step) => step.decision?.decision === "reject";

const rejection = (reason) => (reason ? t("rejectedWhy", { reason: visible(reason) }) : t("rejectedPlain"));

/** The arguments that a call is made with: where a person has changed them, theirs. */
function argumentsOf(args) {
  const text = visible(JSON.stringify(args, null, 2)).slice(0, 20_000);
  return el("div.args", {}, el("p.note", {}, t("arguments")), el("pre", { tabindex: 0, "aria-label": t("arguments") }, text));
}

/** What came out; that its arguments were changed is for the model, and is seen above. */
function shown({ observation, decision }) {
  const { edited, ...rest } = observation;
  return decision?.decision === "edit" ? rest : observation;
}

function title(step) {
  const table = step.args?.table ?? step.observation?.data?.table_name ?? "";
  const query = step.observation?.data?.query;
  if (step.action === "run_sql") return query ? t("run_sql", { query }) : t("run_sql_failed");
  if (isRejected(step)) return t("not_made", { action: step.action });
  const spec = chartOf(step);
  if (spec) return t("drew", { query: spec.data.name });
  const asked = answerOf(step);
  if (asked) return t("askedAgent", { agent: asked.agent ?? "" });
  const known = ["list_tables", "describe_table", "sample_rows", "json_parse_error"].includes(step.action);
  return known ? t(step.action, { table }) : t("other_action", { action: step.action });
}

function found(step, data) {
  if (step.action === "list_tables" && data.tables) return t("tables", { n: data.total ?? data.tables.length });
  if (step.action === "describe_table" && data.columns) return t("columns", { n: data.columns.length });
  if (!Array.isArray(data.rows)) return "";
  const [shown, total] = String(data.shown ?? "").split(" of ");
  return total && total !== shown ? t("rowsOf", { shown: data.shown }) : t("rows", { n: data.row_count ?? data.rows.length });
}

function sqlBlock(sql) {
  return codeBlock(t("sql"), sql, sqlNodes(sql));
}

function tablesOf(data) {
  const names = data.tables ?? [];
  const about = data.about ?? {};
  return el("ul.chips", {}, names.slice(0, 300).map((name) => {
    const { rows, comment } = about[name] ?? {};
    const size = typeof rows === "number" ? number(rows) : "";
    return el("li", { title: comment ?? null }, name, comment ? el("span.soft", {}, ` ${comment}`) : "", size ? el("span.count", {}, size) : "");
  }));
}

function columnsOf(data) {
  const columns = data.columns ?? [];
  const rows = columns.map((column) => [column.primary_key ? `${column.name} · ${t("key")}` : column.name, column.type, aboutColumn(column)]);
  return resultTable([t("column"), t("type"), t("about")], rows, { caption: data.table_name ?? "" });
}

function aboutColumn(column) {
  const parts = [];
  if (column.comment) parts.push(column.comment);
  if (Array.isArray(column.values)) parts.push(column.values.slice(0, 8).map(String).join(", ") + (column.values.length > 8 ? " …" : ""));
  else if (column.min !== undefined && column.max !== undefined) parts.push(`${column.min} – ${column.max}`);
  return parts.join(" · ");
}
