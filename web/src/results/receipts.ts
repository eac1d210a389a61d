// Receipts: which cell of which result a number of an answer is. A number without a sure cell gets none.

import { type Kind, kindsOf } from "./columns";
import { compare } from "./decimal";
import { type Numeral, numerals } from "./numerals";
import { cellText, type QueryResult } from "./result";
import { cellsTold, namesColumn, rowsMeant, sentenceAt } from "./sentence";
import { type CellNumber, cellNumber, digitsOf, namesUnit, worth } from "./worth";

export interface Source {
  readonly step: number | null;
  readonly label: string | null;
  /** `rows`: how many rows the result has; that is in no cell. */
  readonly kind: "cell" | "rows";
  /** Where the result has it. Several: these cells are alike. */
  readonly cells: readonly { readonly row: number; readonly column: number }[];
  /** The value as the database gave it. */
  readonly value: string;
}

export interface Receipt {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Null: not traced. */
  readonly source: Source | null;
}

/** Traces the numbers of one block of an answer: a paragraph, an item, or, with `isRow`, a row of a table. */
export type Tracer = (block: string, isRow?: boolean) => Receipt[];

interface Indexed {
  readonly result: QueryResult;
  readonly kinds: readonly Kind[];
  readonly numbers: readonly (readonly (CellNumber | null)[])[];
  /** Columns of numbers. */
  readonly measures: readonly string[];
}

interface Match {
  readonly row: number;
  readonly column: number;
  readonly exact: boolean;
}

interface Place {
  readonly sentence: string;
  /** Where the number stands in the sentence. */
  readonly at: number;
  readonly before: string;
  readonly behind: string;
  /** What the sentence says of it: what stands before it, but for the number before and its noun. */
  readonly between: string;
  readonly isRow: boolean;
}

const tracers = new WeakMap<readonly QueryResult[], Tracer>();

/**
 * `results` are those that the answer may speak of, oldest first: its own run's, and others that it cites. A block is
 * traced once for the same results: the text and its count ask for the same.
 */
export function tracer(results: readonly QueryResult[]): Tracer {
  const known = tracers.get(results);
  if (known) return known;
  const made = remembered(newTracer(results));
  tracers.set(results, made);
  return made;
}

function remembered(trace: Tracer): Tracer {
  const found = [new Map<string, Receipt[]>(), new Map<string, Receipt[]>()] as const;
  return (block, isRow = false) => {
    const traced = found[isRow ? 1 : 0];
    const receipts = traced.get(block) ?? trace(block, isRow);
    traced.set(block, receipts);
    return receipts;
  };
}

function newTracer(results: readonly QueryResult[]): Tracer {
  const indexed = results.map(index).toReversed();
  const names = namesIn(results);
  return (block, isRow = false) => {
    let last = 0;
    const found = numerals(block, names).map((numeral) => {
      const place = placeOf(block, numeral, isRow, last);
      last = numeral.end;
      const source = first(cited(place.sentence, block, indexed), (each) => traced(numeral, place, each));
      const { start, end } = numeral;
      return {
        receipt: { start, end, text: block.slice(start, end), source },
        isWord: (numeral.year && isTime(place)) || RANK.test(place.before),
      };
    });
    // A year that no result has, and the 3 of `the first 3`, are parts of the sentence.
    return found.filter(({ receipt, isWord }) => receipt.source || !isWord).map(({ receipt }) => receipt);
  };
}

function index(result: QueryResult): Indexed {
  const kinds = kindsOf(result.columns, result.rows);
  const numbers = result.rows.map((row) => row.map(cellNumber));
  const measures = result.columns.filter(
    (_, column) => kinds[column] === "number" && numbers.some((cells) => cells[column]),
  );
  return { result, kinds, numbers, measures };
}

/** Texts that hold letters and digits, such as `Falcon 9`: their digits are no numbers. */
function namesIn(results: readonly QueryResult[]): Set<string> {
  const cells = results.flatMap(({ rows }) => rows.flat());
  return new Set(cells.filter(isName).map((cell) => cell.trim()));
}

const isName = (cell: unknown): cell is string =>
  typeof cell === "string" && cell.length < 200 && /\p{L}/u.test(cell) && /\d/.test(cell);

function placeOf(block: string, { start, end }: Numeral, isRow: boolean, last: number): Place {
  const { sentence, from } = isRow ? { sentence: block, from: 0 } : sentenceAt(block, start);
  return {
    sentence,
    at: start - from,
    before: block.slice(0, start),
    behind: block.slice(end),
    between: last > from ? block.slice(last, start).replace(NOUN, "") : block.slice(from, start),
    isRow,
  };
}

const RANK = /(?:\b(?:first|top|last)|前)[\s*_`]*$/i;
const TIME =
  /(?:\b(?:in|since|from|to|until|till|by|before|after|during|through|between|for|of|the|year|fiscal|FY|Q[1-4]|early|mid|late|(?:19|20)\d\d\W+and)|[在从自于至到前后截止和–—-])[\s*_`]*$/i;
const COUNTED =
  /^[\s*_`]*(?:(?!(?:was|has|is|as|its|this|does|sees|shows|brings|marks)\b)\p{Ll}+s\b|[家个個位人件条名只台辆艘座枚项笔间所])/u;

/** Whether what may be a year is one, as far as the words beside it say: `2011 customers` are none. */
const isTime = ({ before, behind }: Place) => TIME.test(before) || !COUNTED.test(behind);

/** The results that a sentence cites, and no others. Without a citation of its own, those that its block cites come first. */
function cited(sentence: string, block: string, indexed: readonly Indexed[]): readonly Indexed[] {
  const own = indexed.filter(isIn(sentence));
  if (own.length || /\[q\d/.test(sentence)) return own;
  const near = isIn(block);
  return [...indexed.filter(near), ...indexed.filter((each) => !near(each))];
}

function isIn(text: string): (each: Indexed) => boolean {
  const labels = new Set([...text.matchAll(/\bq\d+\b/g)].map(([label]) => label));
  return ({ result }) => result.label !== null && labels.has(result.label);
}

function first<T, U>(all: readonly T[], find: (one: T) => U | null): U | null {
  for (const each of all) {
    const found = find(each);
    if (found !== null) return found;
  }
  return null;
}

function traced(numeral: Numeral, place: Place, indexed: Indexed): Source | null {
  const { result } = indexed;
  const { step, label } = result;
  if (isCountOfRows(numeral, place, result))
    return { step, label, kind: "rows", cells: [], value: String(numeral.digits.digits) };
  const all = matches(numeral, place, indexed);
  const exact = all.filter((match) => match.exact);
  const cells = meant(numeral, place, indexed, exact.length ? exact : all).map(({ row, column }) => ({ row, column }));
  const [at] = cells;
  if (at) return { step, label, kind: "cell", cells, value: cellText(result.rows[at.row]?.[at.column]) };
  return isCountFound(numeral, place, result)
    ? { step, label, kind: "rows", cells: [], value: String(numeral.digits.digits) }
    : null;
}

function matches(numeral: Numeral, place: Place, { result, numbers, measures }: Indexed): Match[] {
  const { columns } = result;
  const named = columns.map((name) => place.isRow || namesColumn(place.sentence, name));
  const units = columns.map((name) => place.isRow || namesUnit(place.sentence, name));
  const found = numbers.flatMap((cells, row) =>
    cells.flatMap((cell, column) => {
      const is =
        cell &&
        worth(numeral, cell, {
          column: columns[column] ?? "",
          isNamed: named[column] ?? false,
          isUnitTold: units[column] ?? false,
        });
      return is ? [{ row, column, exact: is === "same" }] : [];
    }),
  );
  // `96.5 % successful` is a share, whatever it is called.
  if (!found.length || place.isRow || numeral.percent) return found;
  const others = columns.map((name) => isOfAnother(place, name, measures));
  return found.filter(({ column }) => !others[column]);
}

const NOUN = /^[\s*_`]*([\p{L}_]+(?:[ \u00a0][\p{L}_]+)?)/u;

/** What a number is said to be, at the end of the words before it: the revenue in `a revenue of`. */
const SAID =
  /([\p{L}_]+(?:[ \u00a0][\p{L}_]+)?)[\s*_`]*(?:\b(?:of|is|was|were|are|at|about|around|to)\b|[:：=为是达有约\s*_`])*[$€£¥￥]?$/iu;

/**
 * Whether the words right beside a number name other columns and not this one: `150 failures` is none of `launches`, and
 * a `revenue of 900` is no cost.
 */
function isOfAnother({ behind, between }: Place, column: string, columns: readonly string[]): boolean {
  const words = [NOUN.exec(behind)?.[1] ?? "", SAID.exec(between)?.[1] ?? ""];
  const said = words.find((text) => columns.some((each) => namesColumn(text, each)));
  return said !== undefined && !namesColumn(said, column);
}

/** Of the cells that are worth it those that the sentence means; none if that is not sure. */
function meant(
  numeral: Numeral,
  place: Place,
  { result, kinds, numbers }: Indexed,
  all: readonly Match[],
): readonly Match[] {
  const { sentence, at, isRow } = place;
  const rows = isRow || !all.length ? null : rowsMeant(sentence, at, result.rows, kinds);
  const found = rows === null ? all : all.filter(({ row }) => rows.has(row));
  const isNamed = ({ column }: Match) => namesColumn(sentence, result.columns[column] ?? "");
  const ends = isRow ? [] : preferred(endsOfRange(place, all, numbers), isNamed);
  if (ends.length && new Set(ends.map(({ column }) => column)).size === 1) return ends;
  const told = found.map((match) => ({
    match,
    cells: cellsTold(sentence, result.rows[match.row] ?? [], match.column, kinds, isRow),
  }));
  const most = Math.max(0, ...told.map(({ cells }) => cells));
  if (most > 0)
    return preferred(
      told.filter(({ cells }) => cells === most).map(({ match }) => match),
      isNamed,
    );
  const isYear = numeral.year && isTime(place);
  const free = found.filter(
    ({ column }) => kinds[column] !== "id" && (!numeral.year || isYear === (kinds[column] === "year")),
  );
  if (isYear) return free;
  if (result.rows.length === 1) {
    const named = preferred(free, isNamed);
    return named.length === 1 ? named : [];
  }
  // In a result of many rows a small number is somewhere by chance.
  const digits = digitsOf(numeral.digits);
  const named = free.filter(isNamed);
  if (named.length === result.rows.length) return named;
  if (digits < 3 && !numeral.digits.places) return [];
  const sure = named.length ? named : free.length === 1 && (digits > 3 || numeral.digits.places > 0) ? free : [];
  // `Italy had 3400`: a row that has a name is meant where it is named, or is the highest and is said to be, or all are alike.
  const isNameless = kinds.every((kind) => kind !== "text" && kind !== "year");
  return isNameless || sure.length === result.rows.length
    ? sure
    : sure.filter((match) => isExtreme(sentence, match, numbers));
}

const MOST =
  /\b(?:highest|most|largest|biggest|greatest|heaviest|longest|fastest|tallest|max(?:imum)?|peak(?:ed)?|record|best|range[sd]?|between|span)\b|最[高多大重长快贵好]|之间/i;
const LEAST =
  /\b(?:lowest|least|fewest|smallest|lightest|shortest|slowest|cheapest|min(?:imum)?|worst|range[sd]?|between|span)\b|最[低少小轻短慢便差]|之间/i;

/** Whether a cell is the highest or the lowest of its column, and the sentence says so. */
const isExtreme = (sentence: string, match: Match, numbers: Indexed["numbers"]): boolean =>
  (MOST.test(sentence) && isEnd(match, numbers, 1)) || (LEAST.test(sentence) && isEnd(match, numbers, -1));

/** Whether a cell is the highest of its column, or the lowest with `way` -1. */
function isEnd({ row, column }: Match, numbers: Indexed["numbers"], way: 1 | -1): boolean {
  const values = numbers.map((cells) => cells[column]?.number).filter((each) => each !== undefined);
  const value = numbers[row]?.[column]?.number;
  return value !== undefined && values.every((each) => compare(each, value) * way <= 0);
}

const FROM = /^[\s*_`]*(?:to|–|—|至|到)[\s*_`]*[$€£¥￥]?[-−]?\d/i;
const TO = /\d(?:\s?[%％]|\s?\p{L}{1,8})?[\s*_`]*(?:\bto|–|—|至|到)[\s*_`]*[$€£¥￥]?$/iu;

/** Of a range such as `18 to 81 launches` the cells that are its ends: the least and the most of a column. */
function endsOfRange({ before, behind }: Place, all: readonly Match[], numbers: Indexed["numbers"]): Match[] {
  const way = FROM.test(behind) ? -1 : TO.test(before) ? 1 : null;
  return way === null ? [] : all.filter((match) => isEnd(match, numbers, way));
}

/** Those that are so, if any is. */
function preferred(found: readonly Match[], isSo: (one: Match) => boolean): readonly Match[] {
  const some = found.filter(isSo);
  return some.length ? some : found;
}

const SHOWN = /(?:\b(?:first|top|showing|shows?|shown|only)|前|显示|列出)[\s*_`]*$/i;
const ROWS = /^[\s*]*(?:of [\d,]+\s+rows?|rows?|records?|results?|entries|行|条|項|项)/i;

/** `7 rows` of a result with so many, or `showing 2 of 1818 rows`. */
function isCountOfRows(
  { digits, power, percent }: Numeral,
  { before, behind }: Place,
  { total, rows }: QueryResult,
): boolean {
  if (power || percent || digits.places || !ROWS.test(behind)) return false;
  const isTotal = total !== null && digits.digits === BigInt(total);
  return isTotal || (SHOWN.test(before) && digits.digits === BigInt(rows.length));
}

const FOUND = /(?:\b[Ff]ound|找到)[\s*_`]*$/;

/** `Found 12 customers`, or `24 countries: …` at the beginning of a sentence, of a result with so many rows. */
function isCountFound(
  { digits, power, percent, year }: Numeral,
  { sentence, at, before, isRow }: Place,
  { total, rows }: QueryResult,
): boolean {
  if (
    isRow ||
    power ||
    percent ||
    year ||
    digits.places ||
    rows.length < 2 ||
    digits.digits !== BigInt(total ?? rows.length)
  )
    return false;
  return FOUND.test(before) || !/[\p{L}\p{N}]/u.test(sentence.slice(0, at));
}
