// The places `{{name}}` of a card's query, and the values in it that could become one.

import type { ParameterKind, ParameterView } from "../api/types";

const PLACE = /\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}/g;
const DAY = /^\d{4}-\d\d-\d\d$/;
const TEXT = "'(?:[^']|'')*'";
const COLUMN = '((?:[\\p{L}\\p{N}_]+|"[^"]+"|`[^`]+`)(?:\\.(?:[\\p{L}\\p{N}_]+|"[^"]+"|`[^`]+`))?)';
const COMPARED = new RegExp(`${COLUMN}\\s*(=|<>|!=|>=|<=|>|<)\\s*(${TEXT}|\\d+(?:\\.\\d+)?)`, "giu");
const BETWEEN = new RegExp(
  `${COLUMN}\\s+BETWEEN\\s+(${TEXT}|\\d+(?:\\.\\d+)?)\\s+AND\\s+(${TEXT}|\\d+(?:\\.\\d+)?)`,
  "giu",
);

/** The names of the places in a query, each once. */
export const placesIn = (sql: string): string[] => [...new Set([...sql.matchAll(PLACE)].map(([, name = ""]) => name))];

/** A value of a query that could be changed, and the query with a place instead of it. */
export interface Candidate {
  /** As the query has it. */
  readonly literal: string;
  readonly parameter: ParameterView;
  readonly sql: string;
}

/** The values that a query compares columns with. */
export function candidatesIn(sql: string): Candidate[] {
  const found: { at: number; literal: string; column: string; ending: string }[] = [];
  for (const match of sql.matchAll(BETWEEN)) {
    const [whole, column = "", from = "", to = ""] = match;
    const first = match.index + whole.indexOf(from, column.length);
    const last = match.index + whole.length - to.length;
    found.push({ at: first, literal: from, column, ending: "_from" }, { at: last, literal: to, column, ending: "_to" });
  }
  for (const match of sql.matchAll(COMPARED)) {
    const [whole, column = "", sign = "", literal = ""] = match;
    const ending = sign.startsWith(">") ? "_from" : sign.startsWith("<") && sign !== "<>" ? "_to" : "";
    found.push({ at: match.index + whole.length - literal.length, literal, column, ending });
  }
  const taken = placesIn(sql);
  return found
    .toSorted((one, other) => one.at - other.at)
    .map(({ at, literal, column, ending }) => {
      const parameter = parameterOf(literal, column, ending, taken);
      return { literal, parameter, sql: `${sql.slice(0, at)}{{${parameter.name}}}${sql.slice(at + literal.length)}` };
    });
}

function parameterOf(literal: string, column: string, ending: string, taken: readonly string[]): ParameterView {
  const bare = (column.split(".").at(-1) ?? "").replace(/["`]/g, "");
  const text = literal.startsWith("'") ? literal.slice(1, -1).replaceAll("''", "'") : null;
  const kind: ParameterKind = text === null ? "number" : DAY.test(text) ? "date" : "text";
  const ascii = /^[A-Za-z_]\w{0,30}$/.test(bare) ? bare : "value";
  const base = ascii + ending;
  let name = base;
  for (let n = 2; taken.includes(name); n++) name = `${base}${n}`;
  const sign = { _from: " ≥", _to: " ≤", "": "" }[ending] ?? "";
  return { name, label: bare + sign, kind, value: text ?? Number(literal) };
}

/** The parameters of a query: those that are known, and text for new places. */
export function parametersOf(sql: string, known: readonly ParameterView[]): ParameterView[] {
  return placesIn(sql).map(
    (name) => known.find((each) => each.name === name) ?? { name, label: "", kind: "text", value: "" },
  );
}

/** A value of another kind; what cannot be one begins anew. */
export function valueAs(kind: ParameterKind, value: string | number): string | number {
  if (kind === "number") return Number(value) || 0;
  if (kind === "date") return DAY.test(String(value)) ? String(value) : "";
  return String(value);
}
