// A column's format. The server has the same rule in `tools/analysis/column_format.py`; both are tested by `tests/formats.json`.

/**
 * `plain`: digits without separators, such as years and ids. `percent`: 12.5 is 12.5%. `share`: 0.125 is 12.5%. `date`:
 * the day of a moment. `text`: as the database has it.
 */
export type FormatKind = "number" | "plain" | "currency" | "percent" | "share" | "unit" | "date" | "text";

export interface ColumnFormat {
  readonly kind: FormatKind;
  readonly unit?: string;
  /** Digits behind the point; none: as the column's values need them. */
  readonly places?: number;
}

const KINDS = new Set<unknown>(["number", "plain", "currency", "percent", "share", "unit", "date", "text"]);
const NUMERIC = new Set<FormatKind>(["number", "plain", "currency", "percent", "share", "unit"]);
const PREFIXED = new Set(["US$", "HK$", "NT$", "A$", "C$", "R$", "$", "€", "£", "¥", "￥", "₹", "₩"]);
export const MOST_PLACES = 10;
export const LONGEST_UNIT = 20;

export const isNumeric = ({ kind }: ColumnFormat) => NUMERIC.has(kind);

/** What stands before and behind a number. */
export function affixes({ kind, unit = "" }: ColumnFormat): readonly [string, string] {
  if (kind === "percent" || kind === "share") return ["", "%"];
  if ((kind !== "currency" && kind !== "unit") || !unit) return ["", ""];
  if (kind === "currency" && PREFIXED.has(unit)) return [unit, ""];
  return ["", unit > "\u2e7f" || /^[°‰]/.test(unit) ? unit : ` ${unit}`];
}

/** A format that was kept or sent; null: it is none. */
export function formatOfJson(value: unknown): ColumnFormat | null {
  const { kind, unit, places } = (typeof value === "object" && value !== null ? value : {}) as Partial<
    Record<keyof ColumnFormat, unknown>
  >;
  if (!KINDS.has(kind)) return null;
  if (unit !== undefined && (typeof unit !== "string" || unit.length > LONGEST_UNIT)) return null;
  if (places !== undefined && !(Number.isInteger(places) && Number(places) >= 0 && Number(places) <= MOST_PLACES))
    return null;
  return {
    kind: kind as FormatKind,
    ...(unit ? { unit } : {}),
    ...(places === undefined ? {} : { places: Number(places) }),
  };
}
