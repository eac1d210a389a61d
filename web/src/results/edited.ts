// The charts that a person changed in a conversation, by their query. The browser keeps them.

import { keptByThread, useStore } from "../store";
import type { ChartEdit } from "./choices";
import { type Form, MARKS, SORTS, STACKS } from "./forms";
import type { QueryResult } from "./result";

type Edits = Readonly<Record<string, ChartEdit>>;

const LONGEST_TITLE = 200;
/** Charts of a conversation that are kept; the oldest go first. */
const MOST_KEPT = 50;

const kept = keptByThread<Edits>("longthread.charts.", editsOfJson, (edits) => !Object.keys(edits).length);

const keyOf = ({ step, label }: QueryResult) => `${label ?? ""} ${step ?? ""}`;

/** What was changed of a result's chart; null: nothing. */
export function useEdit(threadId: string, result: QueryResult | null): ChartEdit | null {
  const edits = useStore(kept.of(threadId));
  return (result && edits[keyOf(result)]) ?? null;
}

/** Keeps the chart of a result; null: as it was. */
export function keepEdit(threadId: string, result: QueryResult, edit: ChartEdit | null): void {
  const { [keyOf(result)]: _, ...others } = kept.of(threadId).get();
  const all = Object.entries(edit ? { ...others, [keyOf(result)]: edit } : others);
  kept.keep(threadId, Object.fromEntries(all.slice(-MOST_KEPT)));
}

function editsOfJson(value: unknown): Edits {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.flatMap(([key, each]) => {
      const { form, title, of } = (each ?? {}) as Partial<ChartEdit>;
      const isEdit = typeof title === "string" && title.length <= LONGEST_TITLE && (form === null || isForm(form));
      return isEdit ? [[key, { form: form ?? null, title, ...(typeof of === "string" ? { of } : {}) }] as const] : [];
    }),
  );
}

const isPlace = (place: unknown) => Number.isInteger(place) && Number(place) >= 0;

/** Whether something that was kept or sent is a form. */
export function isForm(form: Partial<Form> | undefined): form is Form {
  const { mark, x, y, color, beside, stack, sort } = form ?? {};
  return (
    MARKS.some((each) => each === mark) &&
    isPlace(x) &&
    isPlace(y) &&
    (color === null || isPlace(color)) &&
    Array.isArray(beside) &&
    beside.every(isPlace) &&
    [undefined, ...STACKS].includes(stack) &&
    [undefined, ...SORTS].includes(sort)
  );
}
