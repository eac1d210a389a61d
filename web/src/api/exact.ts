// JSON whose whole numbers beyond 2^53 stay exact: they become strings.

interface Source {
  source?: string;
}

const exact = (_key: string, value: unknown, context?: Source): unknown =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context?.source : value;

/** Reads JSON as `JSON.parse`; a whole number that JavaScript would round becomes its text. */
export function parseExact(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}
