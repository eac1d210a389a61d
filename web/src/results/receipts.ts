// Receipts: which cell of which result a number of an answer is. A number without a sure cell gets none.

import { type Kind, kindsOf } from "./columns";
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
    const found = numerals(block, names).map((numeral) => {
      const place = placeOf(block, numeral, isRow);
      const source = first(cited(place.sentence, block, indexed), (each) => traced(numeral, place, each));
      const { start, end } = numeral;
      return { receipt: { start, end, text: block.slice(start, end), source }, year: numeral.year };
    });
    // A year that no result has is a part of the sentence.
    return found.filter(({ receipt, year }) => receipt.source || !year).map(({ receipt }) => receipt);
  };
}

function index(result: QueryResult): Indexed {
  return { result, kinds: kindsOf(result.columns, result.rows), numbers: result.rows.map((row) => row.map(cellNumber)) };
}

/** Texts that hold letters and digits, such as `Falcon 9`: their digits are no numbers. */
function namesIn(results: readonly QueryResult[]): Set<string> {
  const cells = results.flatMap(({ rows }) => rows.flat());
  return new Set(cells.filter(isName).map((cell) => cell.trim()));
}

const isName = (cell: unknown): cell is string => typeof cell === "string" && cell.length < 200 && /\p{L}/u.test(cell) && /\d/.test(cell);

function placeOf(block: string, { start, end }: Numeral, isRow: boolean): Place {
  const { sentence, from } = isRow ? { sentence: block, from: 0 } : sentenceAt(block, start);
  return { sentence, at: start - from, before: block.slice(0, start), behind: block.slice(end), isRow };
}

/** The results that a sentence cites, and no others. Without a citation of its own, those that its block cites come first. */
function cited(sentence: string, block: string, indexed: readonly Indexed[]): readonly Indexed[] {
  const own = indexed.filter(isIn(sentence));
  if (own.length) return own;
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
  if (isCountOfRows(numeral, place, result)) return { step, label, kind: "rows", cells: [], value: String(numeral.digits.digits) };
  const all = matches(numeral, place, indexed);
  const exact = all.filter((match) => match.exact);
  const cells = meant(numeral, place, indexed, exact.length ? exact : all).map(({ row, column }) => ({ row, column }));
  const [at] = cells;
  return at ? { step, label, kind: "cell", cells, value: cellText(result.rows[at.row]?.[at.column]) } : null;
}

function matches(numeral: Numeral, place: Place, { result, numbers }: Indexed): Match[] {
  const { columns } = result;
  const units = columns.map((name) => place.isRow || namesUnit(place.sentence, name));
  // `96.5 % successful` is a share, whatever it is called.
  const others = columns.map((name) => !place.isRow && !numeral.percent && isOfAnother(place.behind, name, columns));
  return numbers.flatMap((cells, row) =>
    cells.flatMap((cell, column) => {
      const found = cell && !others[column] && worth(numeral, cell, columns[column] ?? "", units[column] ?? false);
      return found ? [{ row, column, exact: found === "same" }] : [];
    }),
  );
}

const NOUN = /^[\s*_`]*([\p{L}_]+(?:[ \u00a0][\p{L}_]+)?)/u;

/** Whether the words right behind a number name other columns and not this one: `150 failures` is none of `launches`. */
function isOfAnother(behind: string, column: string, columns: readonly string[]): boolean {
  const noun = NOUN.exec(behind)?.[1] ?? "";
  return !namesColumn(noun, column) && columns.some((each) => namesColumn(noun, each));
}

/** Of the cells that are worth it those that the sentence means; none if that is not sure. */
function meant(numeral: Numeral, { sentence, at, isRow }: Place, { result, kinds }: Indexed, all: readonly Match[]): readonly Match[] {
  const rows = isRow || !all.length ? null : rowsMeant(sentence, at, result.rows, kinds);
  const found = rows === null ? all : all.filter(({ row }) => rows.has(row));
  const isNamed = ({ column }: Match) => namesColumn(sentence, result.columns[column] ?? "");
  const told = found.map((match) => ({ match, cells: cellsTold(sentence, result.rows[match.row] ?? [], match.column, kinds, isRow) }));
  const most = Math.max(0, ...told.map(({ cells }) => cells));
  if (most > 0) return preferred(told.filter(({ cells }) => cells === most).map(({ match }) => match), isNamed);
  const free = found.filter(({ column }) => kinds[column] !== "id");
  if (numeral.year) return free.filter(({ column }) => kinds[column] === "year");
  if (result.rows.length === 1) {
    const named = preferred(free, isNamed);
    return named.length === 1 ? named : [];
  }
  // In a result of many rows a small number is somewhere by chance.
  const digits = digitsOf(numeral.digits);
  if (digits < 3 && !numeral.digits.places) return [];
  const named = free.filter(isNamed);
  return named.length ? named : free.length === 1 && (digits > 3 || numeral.digits.places > 0) ? free : [];
}

/** Those that are so, if any is. */
function preferred(found: readonly Match[], isSo: (one: Match) => boolean): readonly Match[] {
  const some = found.filter(isSo);
  return some.length ? some : found;
}

const SHOWN = /(?:\b(?:first|top|showing|shows?|shown|only)|前|显示|列出)[\s*_`]*$/i;
const ROWS = /^[\s*]*(?:of [\d,]+\s+rows?|rows?|records?|results?|entries|行|条|項|项)/i;

/** `7 rows` of a result with so many, or `showing 2 of 1818 rows`. */
function isCountOfRows({ digits, power, percent }: Numeral, { before, behind }: Place, { total, rows }: QueryResult): boolean {
  if (power || percent || digits.places || !ROWS.test(behind)) return false;
  const isTotal = total !== null && digits.digits === BigInt(total);
  return isTotal || (SHOWN.test(before) && digits.digits === BigInt(rows.length));
}
