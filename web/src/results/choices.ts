// The charts of a result: those that the model made, and the forms that fit its columns.

import type { Step } from "../stream/types";
import { type Form, MARKS, type Mark, type Spec, formsOf } from "./forms";
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
  /** The specification of a chart that the model made, perhaps without its rows. */
  readonly given?: Spec | null;
  /** Whether it was changed on the page. */
  readonly isEdited?: boolean;
}

/** What was changed of a chart on the page. `form` is null where a chart of the model has another title alone. */
export interface ChartEdit {
  readonly form: Form | null;
  readonly title: string;
  /** The key of the chart whose title it is; without it, that of each. */
  readonly of?: string;
}

/** Rows up to which a form is drawn: those that the server gives on one page. */
export const MOST_DRAWN = 1000;

export function choicesOf(
  result: QueryResult | null,
  charts: readonly Step[],
  edit: ChartEdit | null = null,
): ChartChoice[] {
  // A form is drawn from one page of rows: of more, it would be a part that does not say so.
  const edited =
    edit?.form &&
    isSmall(result) &&
    [edit.form.x, edit.form.y, edit.form.color ?? 0, ...edit.form.beside].every(
      (place) => place < result.columns.length,
    );
  const isRenamed = (key: string) => edit !== null && !edited && (edit.of ?? key) === key;
  const made: ChartChoice[] = charts.map(({ chart, index }, at) => {
    const key = `made${at}`;
    return {
      key,
      mark: markOf(chart),
      title: edit && isRenamed(key) ? edit.title : titleOf(chart),
      step: index,
      spec: chart && hasRows(chart) ? chart : null,
      form: null,
      given: chart ?? null,
    };
  });
  const drawn = made.filter(({ step, spec }) => step !== null || spec !== null);
  const taken = new Set(drawn.map(({ mark }) => mark));
  const fitting = isSmall(result)
    ? formsOf(result.columns, result.rows, result.formats).filter(({ mark }) => !taken.has(mark))
    : [];
  const own: ChartChoice[] = edited
    ? [
        {
          key: `edited ${JSON.stringify(edit)}`,
          mark: edit.form.mark,
          title: edit.title,
          step: null,
          spec: null,
          form: edit.form,
          isEdited: true,
        },
      ]
    : [];
  return [
    ...own,
    ...drawn,
    ...fitting.map((form) => ({ key: form.mark, mark: form.mark, title: "", step: null, spec: null, form })),
  ];
}

/** A chart with another title. That alone changes nothing of a chart of the model. */
export const renamed = ({ form, key }: ChartChoice, title: string): ChartEdit =>
  form ? { form, title } : { form: null, title, of: key };

const hasRows = (chart: Spec): boolean => Array.isArray((chart["data"] as { values?: unknown } | undefined)?.values);

/** Whether the page has, or gets at once, all rows of a result, so that it draws them itself. */
export function isSmall(result: QueryResult | null): result is QueryResult {
  if (result === null) return false;
  if (result.total === result.rows.length) return true;
  return result.step !== null && result.total !== null && result.total <= MOST_DRAWN;
}

function markOf(chart: Step["chart"]): Mark | null {
  const mark = chart?.["mark"] as string | { type?: string } | undefined;
  const name = typeof mark === "string" ? mark : mark?.type;
  return MARKS.find((each) => each === name) ?? null;
}

function titleOf(chart: Step["chart"]): string {
  return [chart?.["title"]]
    .flat()
    .filter((text) => typeof text === "string")
    .join(" ");
}
