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
/** Names of numbers that are worth adding up before others. */
const AMOUNT = /revenue|turnover|sales|amount|income|spend|spent|profit|total|营业额|销售额|金额|收入|总额|总价|利润/i;
/** Names of numbers of which only an average says something. */
const RATE = new RegExp(
  [
    "(^|[^a-z])(price|wage|rate|ratio|percent|percentage|discount|rating|score|age|avg|temperature)s?($|[^a-z])",
    "[a-z](price|wage|percent)$|hourly|average|%",
    "单价|价格|售价|时薪|工资|比例|比率|率$|折扣|评分|年龄|温度|平均",
  ].join("|"),
  "i",
);
/** What makes an amount of what is named like a rate: a total price, a discount amount. */
const SUM = /total|amount|总价|总额|金额/i;

interface Fields {
  table: string;
  names: readonly string[];
  /** The first column, where none of the rows shown has a value of it twice. */
  key: string | null;
  /** Numbers to add up, the likeliest first. */
  sums: readonly string[];
  /** Numbers to average: those to add up, then prices and rates. */
  numbers: readonly string[];
  texts: readonly string[];
  dates: readonly string[];
}

/** Up to three questions: over the tables together first, then over each, those with an amount before others. */
export function suggest(tables: readonly TableView[]): Suggested[] {
  const read = tables.filter(({ problem }) => problem === null).map(fieldsOf);
  const fields = read.toSorted((one, other) => best(one) - best(other));
  const found = [
    ...fields.flatMap((each) => joined(each, fields)).slice(0, 1),
    ...fields.flatMap(alone),
    ...fields.map(({ table }) => ({ id: "files.askRows", values: { table } }) as const),
  ];
  const seen = new Set<string>();
  return found.filter((each) => !seen.has(JSON.stringify(each)) && seen.add(JSON.stringify(each))).slice(0, MOST);
}

/** How a number is best told: 0, an amount to add up; 1, a number that may be added up; 2, a rate. */
const rank = (name: string): number => (RATE.test(name) && !SUM.test(name) ? 2 : AMOUNT.test(name) ? 0 : 1);

/** The rank of a table's first number; 3 where it has none. */
const best = ({ numbers: [number] }: Fields): number => (number === undefined ? 3 : rank(number));

function fieldsOf({ name, columns, rows }: TableView): Fields {
  const of = (...kinds: string[]) =>
    columns.flatMap((column, at) =>
      kinds.includes(kindOf(column.type) ?? "") && !KEY.test(column.name) ? [{ name: column.name, at }] : [],
    );
  const isShort = ({ at }: { at: number }) =>
    rows.every((row) => String(row[at] ?? "").length <= SHORT && !/@|:\/\//.test(String(row[at] ?? "")));
  const numbers = of("number")
    .map((each) => each.name)
    .toSorted((one, other) => rank(one) - rank(other));
  const [first] = columns;
  const isKey =
    first !== undefined &&
    ["text", "number"].includes(kindOf(first.type) ?? "") &&
    rows.length > 1 &&
    new Set(rows.map(([value]) => String(value))).size === rows.length;
  return {
    table: name,
    names: columns.map((column) => column.name),
    key: isKey ? first.name : null,
    sums: numbers.filter((each) => rank(each) < 2),
    numbers,
    texts: of("text")
      .filter(isShort)
      .map((each) => each.name),
    dates: of("date", "moment").map((each) => each.name),
  };
}

/** A number of one table by a text of another one, whose key the first has too, and not as its own. */
function joined(one: Fields, all: readonly Fields[]): Suggested[] {
  const [number] = one.sums;
  if (number === undefined) return [];
  const others = all.filter(
    (other) => other !== one && other.key !== null && one.key !== other.key && one.names.includes(other.key),
  );
  return others
    .flatMap(({ texts }) => texts.filter((text) => !one.names.includes(text)).slice(0, 1))
    .map((text) => ({ id: "files.askTotal", values: { number, text } }));
}

function alone({ sums: [sum], numbers: [number], texts, dates }: Fields): Suggested[] {
  if (number === undefined) return [];
  const [text, other = text] = texts;
  return [
    ...(sum === undefined || text === undefined
      ? []
      : [{ id: "files.askTotal", values: { number: sum, text } } as const]),
    ...(sum === undefined || dates.length === 0 ? [] : [{ id: "files.askMonths", values: { number: sum } } as const]),
    ...(other === undefined ? [] : [{ id: "files.askAverage", values: { number, text: other } } as const]),
  ];
}
