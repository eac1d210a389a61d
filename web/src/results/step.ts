// Results in the steps of a turn.

import { formatsOfJson } from "../formats/chosen";
import type { Step, Turn } from "../stream/types";
import type { QueryResult, Row } from "./result";

/** What a query's step shows; null for other steps, and where a query gave no rows to show. */
export function resultOf(step: Step): QueryResult | null {
  const { sql, columns, rows, query, total, index } = step;
  if (step.status !== "ok" || sql === undefined || !columns || !rows) return null;
  const formats = formatsOfJson(step.observation?.data?.["formats"]);
  return {
    step: index,
    label: query ?? null,
    sql,
    columns,
    rows: rows as readonly Row[],
    total: total ?? null,
    formats,
  };
}

/**
 * What a turn's answer may speak of: the results of its own queries, and those of earlier ones that it cites. Of a
 * query whose run is not loaded the answer has the SQL and no rows.
 */
export function resultsOf(turns: readonly Turn[], turn: Turn, answer: string): QueryResult[] {
  const cited = new Set(labelsIn(answer));
  const place = turns.findIndex(({ id }) => id === turn.id);
  const earlier = turns.slice(0, Math.max(0, place)).flatMap((each) => resultsIn(each));
  const found = [...earlier.filter(({ label }) => label !== null && cited.has(label)), ...resultsIn(turn)];
  const known = new Set(found.map(({ label }) => label));
  const others = (turn.run?.cites ?? []).filter(({ query }) => cited.has(query) && !known.has(query));
  return [
    ...others.map(({ query, sql, columns }) => ({ step: null, label: query, sql, columns, rows: [], total: null })),
    ...found,
  ];
}

const resultsIn = ({ run, steps }: Turn) =>
  (run?.steps ?? steps).map((step) => resultOf(step)).filter((result) => result !== null);
const labelsIn = (answer: string) => [...answer.matchAll(/\bq\d+\b/g)].map(([label]) => label);

/** A card: a query, with the charts that the model made of it. */
export interface Card {
  readonly step: Step;
  readonly charts: readonly Step[];
}

/**
 * The cards of a turn: queries that have a chart, that the answer cites, or, if there are none, the last one that found
 * rows. Queries that only led there are among the steps. The demo model cites what it found in its first sentence, and
 * below that what it counted besides; a refusal cites nothing.
 */
export function cardsOf(steps: readonly Step[], text: string, model = ""): Card[] {
  const isDemo = model === "demo";
  const answer = isDemo ? (text.split("\n\n", 1)[0] ?? "") : text;
  const queries = steps.filter((step) => resultOf(step) !== null);
  const charts = steps.filter((step) => step.chart && step.status === "ok");
  const cited = new Set(labelsIn(answer));
  const shown = queries.filter(
    (step) => chartsOf(step, charts).length || (step.query !== undefined && cited.has(step.query)),
  );
  const last = isDemo ? [] : queries.slice(-1).filter(({ rows }) => rows?.length);
  const cards = (shown.length ? shown : last).map((step) => ({ step, charts: chartsOf(step, charts) }));
  const placed = new Set(cards.flatMap((card) => card.charts));
  // A chart of an earlier turn's query stands by itself.
  return [...cards, ...charts.filter((chart) => !placed.has(chart)).map((step) => ({ step, charts: [step] }))];
}

const chartsOf = (query: Step, charts: readonly Step[]) =>
  charts.filter((chart) => query.query !== undefined && labelOf(chart) === query.query);

/** The label of the query that a chart shows. */
function labelOf({ chart }: Step): string | null {
  const data = chart?.["data"] as { name?: unknown } | undefined;
  return typeof data?.name === "string" ? data.name : null;
}
