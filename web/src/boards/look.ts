// How a card is shown, as the server keeps it for the page, and the chart that it makes of its rows.

import type { JsonObject, SharedCard } from "../api/types";
import { type Formats, formatsOfJson } from "../formats/chosen";
import { isForm } from "../results/edited";
import { type Form, type Spec, formsOf } from "../results/forms";
import type { QueryResult, Row } from "../results/result";
import { specOf, withRows } from "../results/spec";

export interface Look {
  readonly view: "table" | "chart";
  readonly wide: boolean;
  /** A form of the page's, by the places of columns; or a specification without its rows. Neither: the form that fits best. */
  readonly form: Form | null;
  readonly spec: Spec | null;
  readonly formats: Formats;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Reads a look; what it does not say is as usual. */
export function lookOf(json: JsonObject): Look {
  const form = isObject(json["form"]) ? (json["form"] as Partial<Form>) : undefined;
  return {
    view: json["view"] === "chart" ? "chart" : "table",
    wide: json["wide"] === true,
    form: isForm(form) ? form : null,
    spec: isObject(json["spec"]) ? json["spec"] : null,
    formats: formatsOfJson(json["formats"]),
  };
}

/** A look as it is stored. */
export const jsonOf = (look: Look) => JSON.parse(JSON.stringify(look)) as JsonObject;

/** A card's rows as the parts of results see them. No step has them: they are here. */
export function resultOfCard({ sql, result }: SharedCard, look: Look): QueryResult {
  const formats = { ...formatsOfJson(result.formats), ...look.formats };
  return {
    step: null,
    label: null,
    sql,
    columns: result.columns,
    rows: result.rows as Row[],
    total: result.total,
    formats,
  };
}

/** The chart of a card with the rows that it has now; null where they are no chart. */
export function specOfCard(look: Look, { columns, rows, formats }: QueryResult): Spec | null {
  if (look.spec)
    return fieldsOf(look.spec).every((field) => columns.includes(field)) ? withRows(look.spec, columns, rows) : null;
  const [fitting] = formsOf(columns, rows, formats ?? {});
  const form = look.form ?? fitting;
  if (!form || rows.length === 0) return null;
  const places = [form.x, form.y, ...form.beside, ...(form.color === null ? [] : [form.color])];
  return places.every((place) => place < columns.length) ? specOf(form, columns, rows) : null;
}

/** A specification without its rows, as it is kept. */
export function withoutRows(spec: Spec): Spec {
  const { values: _, ...data } = (spec["data"] ?? {}) as Record<string, unknown>;
  return { ...spec, data };
}

/** The columns that a specification takes from its rows. */
function fieldsOf(spec: Spec): string[] {
  const folds = (spec["transform"] ?? []) as { fold?: string[]; as?: string[] }[];
  const made = new Set(folds.flatMap((each) => (each.fold ? (each.as ?? ["key", "value"]) : [])));
  const channels = Object.values((spec["encoding"] ?? {}) as Record<string, { field?: unknown }>);
  const named = [...channels.map(({ field }) => field), ...folds.flatMap(({ fold = [] }) => fold)].filter(
    (field) => typeof field === "string",
  );
  return named.map((field) => field.replace(/\\(.)/gu, "$1")).filter((field) => !made.has(field));
}
