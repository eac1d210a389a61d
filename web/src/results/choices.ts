// The charts of a result: those that the model made, and the forms that fit its columns.

import type { Step } from "../stream/types";
import { type Form, type Mark, type Spec, formsOf } from "./forms";
import type { QueryResult } from "./result";

export interface ChartChoice {
  readonly key: string;
  readonly mark: Mark | null;
  /** Of a chart that the model made; empty otherwise. */
  readonly title: string;
  /** The step whose chart it is; null: a form of ours, or one that has its rows. */
  readonly step: number | null;
  /** The specification of a chart that has its rows. */
  readonly spec: Spec | null;
  readonly form: Form | null;
}

/** Rows up to which a form is drawn: those that the server gives on one page. */
export const MOST_DRAWN = 1000;

export function choicesOf(result: QueryResult | null, charts: readonly Step[]): ChartChoice[] {
  const made = charts.map(({ chart, index }, at) => ({ key: `made${at}`, mark: markOf(chart), title: titleOf(chart), step: index, spec: chart && hasRows(chart) ? chart : null, form: null }));
  const drawn = made.filter(({ step, spec }) => step !== null || spec !== null);
  const taken = new Set(drawn.map(({ mark }) => mark));
  const fitting = isSmall(result) ? formsOf(result.columns, result.rows, result.formats).filter(({ mark }) => !taken.has(mark)) : [];
  return [...drawn, ...fitting.map((form) => ({ key: form.mark, mark: form.mark, title: "", step: null, spec: null, form }))];
}

const hasRows = (chart: Spec): boolean => Array.isArray((chart["data"] as { values?: unknown } | undefined)?.values);

function isSmall(result: QueryResult | null): result is QueryResult {
  if (result === null) return false;
  if (result.total === result.rows.length) return true;
  return result.step !== null && result.total !== null && result.total <= MOST_DRAWN;
}

function markOf(chart: Step["chart"]): Mark | null {
  const mark = chart?.["mark"] as string | { type?: string } | undefined;
  const name = typeof mark === "string" ? mark : mark?.type;
  return (["bar", "line", "area", "point", "arc"] as const).find((each) => each === name) ?? null;
}

function titleOf(chart: Step["chart"]): string {
  return [chart?.["title"]].flat().filter((text) => typeof text === "string").join(" ");
}
