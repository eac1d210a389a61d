// Questions that tables suggest by their columns.

import type { TableView } from "../api/types";
import type { MessageId } from "../i18n";
import { kindOf } from "./types";

export interface Suggested {
  id: MessageId;
  values: Record<string, string>;
}

const MOST = 3;
/** Names of columns whose numbers and texts only tell rows apart. */
const KEY = /(^|[^a-z])(id|no|nr|key|code|uuid|zip)$|Id$|编号|代码|序号|号$|年份|year/i;
/** Characters of a value that may name a group. */
const SHORT = 40;

interface Fields {
  table: string;
  names: readonly string[];
  numbers: readonly string[];
  texts: readonly string[];
  dates: readonly string[];
}

/** Up to three questions: over the tables together first, then over each. */
export function suggest(tables: readonly TableView[]): Suggested[] {
  const fields = tables.filter(({ problem }) => problem === null).map(fieldsOf);
  const found = [...fields.flatMap((each) => joined(each, fields)).slice(0, 1), ...fields.flatMap(alone), ...fields.map(({ table }) => ({ id: "files.askRows", values: { table } }) as const)];
  const seen = new Set<string>();
  return found.filter((each) => !seen.has(JSON.stringify(each)) && seen.add(JSON.stringify(each))).slice(0, MOST);
}

function fieldsOf({ name, columns, rows }: TableView): Fields {
  const of = (...kinds: string[]) => columns.flatMap((column, at) => (kinds.includes(kindOf(column.type) ?? "") && !KEY.test(column.name) ? [{ name: column.name, at }] : []));
  const isShort = ({ at }: { at: number }) => rows.every((row) => String(row[at] ?? "").length <= SHORT && !/@|:\/\//.test(String(row[at] ?? "")));
  return {
    table: name,
    names: columns.map((column) => column.name),
    numbers: of("number").map((each) => each.name),
    texts: of("text").filter(isShort).map((each) => each.name),
    dates: of("date", "moment").map((each) => each.name),
  };
}

/** A number of one table by a text of another one that has a column with it. */
function joined(one: Fields, all: readonly Fields[]): Suggested[] {
  const [number] = one.numbers;
  if (number === undefined) return [];
  const others = all.filter((other) => other !== one && other.names.some((name) => one.names.includes(name)));
  return others.flatMap(({ texts }) => texts.filter((text) => !one.names.includes(text)).slice(0, 1)).map((text) => ({ id: "files.askTotal", values: { number, text } }));
}

function alone({ numbers, texts, dates }: Fields): Suggested[] {
  const [number] = numbers;
  if (number === undefined) return [];
  const [text, other = text] = texts;
  return [
    ...(text === undefined ? [] : [{ id: "files.askTotal", values: { number, text } } as const]),
    ...(dates.length === 0 ? [] : [{ id: "files.askMonths", values: { number } } as const]),
    ...(other === undefined ? [] : [{ id: "files.askAverage", values: { number, text: other } } as const]),
  ];
}
