// What kind of values a column has, by its values and its name.

import type { Cell, Row } from "./result";

/** `id`: numbers that name something. `year`: whole numbers that are years. `time`: ISO dates and moments. */
export type Kind = "number" | "id" | "year" | "time" | "boolean" | "text";

const NUMERIC_TEXT = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;
const NO_NUMBERS = new Set(["NaN", "Infinity", "-Infinity"]);
const YEAR_TEXT = /^(?:19\d\d|20\d\d)$/;
const MOMENT = /^\d{4,}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?)?$/;
const ID =
  /(?:^|[_ .-])(?:ids?|uuid|key|code|zip|phone|no|number|postcode|barcode|sku|invoice|account)$|编号$|编码$|代码$|电话$|号$|号码$/i;
/** `customerId`, and not `paid`. */
const CAMEL_ID = /[a-z](?:Id|ID)$/;
const YEAR = /(?:^|[_ .-])(?:year|yr)s?(?:[_ .-]|$)|(?:^|[_ .-])(?:founded|established|born)$|年份?$/i;

export function kindOf(name: string, cells: readonly Cell[]): Kind {
  const values = cells.filter((cell) => cell !== null);
  if (!values.length) return "text";
  if (values.every((cell) => typeof cell === "boolean")) return "boolean";
  const numbers = values.filter((cell) => !(typeof cell === "string" && NO_NUMBERS.has(cell)));
  if (numbers.length && numbers.every((cell) => typeof cell === "number")) return ofNumbers(name, numbers);
  if (!values.every((cell) => typeof cell === "string")) return "text";
  // What SQLite's strftime('%Y') gives.
  if (values.every((cell) => YEAR_TEXT.test(cell as string)) && !isId(name)) return "year";
  if (numbers.length && areExact(numbers as string[])) return isId(name) ? "id" : "number";
  return values.every((cell) => MOMENT.test(cell as string)) ? "time" : "text";
}

const isId = (name: string) => ID.test(name) || CAMEL_ID.test(name);

export function kindsOf(columns: readonly string[], rows: readonly Row[]): Kind[] {
  return columns.map((name, at) =>
    kindOf(
      name,
      rows.map((row) => row[at] ?? null),
    ),
  );
}

function ofNumbers(name: string, values: readonly Cell[]): Kind {
  const whole = values.every((value) => Number.isInteger(value));
  const years = whole && values.every((value) => (value as number) >= 1000 && (value as number) <= 2999);
  if (YEAR.test(name) && years) return "year";
  return whole && isId(name) && name.toLowerCase() !== "number" ? "id" : "number";
}

/** Whether texts are exact numbers: with a point, or so large that JSON cannot hold one of them. Else they may be codes. */
function areExact(texts: readonly string[]): boolean {
  if (!texts.every((text) => NUMERIC_TEXT.test(text))) return false;
  return texts.some((text) => text.includes(".") || !Number.isSafeInteger(Number(text)));
}

/** A moment that JavaScript understands: PostgreSQL's `+00` becomes `+00:00`, and a day or a month is one of UTC. */
export function momentOf(text: string): Date | null {
  if (!MOMENT.test(text)) return null;
  const iso = text.replace(" ", "T");
  const [, rest = iso, hours, minutes = "00"] =
    (text.includes(":") && /^(.*T.*)([+-]\d{2}):?(\d{2})?$/.exec(iso)) || [];
  const date = new Date(
    text.length <= 7 ? `${iso}-01` : hours ? `${rest}${hours}:${minutes}` : isZoned(iso) ? iso : `${iso}Z`,
  );
  return Number.isNaN(date.getTime()) ? null : date;
}

/** What has no zone is shown as it is written, whatever the browser's. */
const isZoned = (iso: string) => iso.endsWith("Z") || !iso.includes("T");
