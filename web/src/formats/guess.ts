// A column's format, guessed from its name and values where nothing else tells it.

import { kindOf } from "../results/columns";
import type { Cell, Row } from "../results/result";
import { type ColumnFormat, isNumeric } from "./columnFormat";
import { asNumber, isMoment, numberIn, withPlaces } from "./written";

export const TEXT: ColumnFormat = { kind: "text" };
const MIDNIGHT = /^\d{4,}-\d{2}-\d{2}[T ]00:00(?::00(?:\.0+)?)?(?:Z|\+00(?::?00)?)?$/;
const PERCENT = /percent(?!ile)|pct(?!l)|[%％]|百分(?!位)/i;
const SHARE =
  /share(?![_ ]?price)|proportion|(?<!exchange)(?<!fx)(?<!hourly)(?:^|[_ ])rate$|占比|比例|(?<![汇频斜心])(?<!(?<!成)功)(?<!分辨)率$/i;
/** The name says that its numbers are thousands or more. */
const SCALED = /billion|million|thousand|(?:^|_)[bm]n(?:_|$)|[千万亿]/i;
const CURRENCIES: readonly (readonly [string, RegExp])[] = [
  ["$", /(?:^|[_ .(（-])(?:usd|us\$|dollars?)(?:[_ .)）-]|$)|\(\$\)|美元/i],
  ["€", /(?:^|[_ .(（-])(?:eur|euros?)(?:[_ .)）-]|$)|€|欧元/i],
  ["£", /(?:^|[_ .(（-])gbp(?:[_ .)）-]|$)|£|英镑/i],
  ["¥", /(?:^|[_ .(（-])(?:cny|rmb|yuan)(?:[_ .)）-]|$)|[(（]元[)）]|_元$|人民币|[¥￥]/i],
  ["₹", /(?:^|[_ .(（-])inr(?:[_ .)）-]|$)|₹/i],
];
const MONEY =
  /price|revenue|amount|(?:^|[_ ])(?:cost|fee|salary|income|profit|budget|paid|spend|spent|balance)s?(?:[_ ]|$)|金额|价格|单价|售价|收入|费用|成本|销售额|利润|工资|预算|余额/i;

/** The format of a column by its name and cells. Its places are those that the cells need. */
export function guessed(name: string, cells: readonly Cell[]): ColumnFormat {
  const values = cells.filter((cell) => cell !== null);
  const kind = kindOf(name, values);
  if (kind === "time" && values.every((cell) => isMoment(cell)))
    return values.every((cell) => MIDNIGHT.test(String(cell))) ? { kind: "date" } : TEXT;
  if (kind === "year" || kind === "id") return { kind: "plain", places: 0 };
  return kind === "number" ? withPlaces(ofNumbers(name, values), values) : TEXT;
}

/** The formats of a result's columns: those that are given by name, and guesses; with the places that the rows need. */
export function formatsOf(
  columns: readonly string[],
  rows: readonly Row[],
  given: Readonly<Record<string, ColumnFormat>>,
): ColumnFormat[] {
  return columns.map((name, at) => {
    const cells = rows.map((row) => row[at] ?? null);
    const known = given[name];
    if (!known) return guessed(name, cells);
    return isNumeric(known) && cells.every((cell) => numberIn(cell) === null)
      ? guessed(name, cells)
      : withPlaces(known, cells);
  });
}

function ofNumbers(name: string, cells: readonly Cell[]): ColumnFormat {
  const sizes = cells
    .map((cell) => numberIn(cell))
    .filter((number) => number !== null)
    .map((number) => Math.abs(asNumber(number)));
  const areShares = sizes.every((size) => size <= 1) && sizes.some((size) => size % 1 !== 0);
  // Of a percentage, whether 0.5 is a half or 0.5% is not told.
  if (PERCENT.test(name) && sizes.every((size) => size <= 10_000)) return { kind: areShares ? "number" : "percent" };
  if (SHARE.test(name) && areShares) return { kind: "share" };
  if (SCALED.test(name)) return { kind: "number" };
  const unit = CURRENCIES.find(([, said]) => said.test(name))?.[0];
  if (unit) return { kind: "currency", unit };
  return MONEY.test(name) ? { kind: "currency" } : { kind: "number" };
}
