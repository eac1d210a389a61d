// Exact decimal numbers. A double would change whole numbers beyond 2^53, and 0.1 + 0.2.

export interface Decimal {
  /** The digits as a whole number, with the sign. */
  readonly digits: bigint;
  /** How many of the digits stand behind the point. */
  readonly places: number;
}

const PLAIN = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;

/** Reads what JSON and databases write: `-12.50`, `1e21`. Null: no number. */
export function decimal(text: string): Decimal | null {
  const found = PLAIN.exec(text.trim());
  if (!found) return null;
  const [, sign = "", whole = "", behind = "", power = "0"] = found;
  if (!whole && !behind) return null;
  const digits = BigInt(`${whole}${behind}`) * (sign === "-" ? -1n : 1n);
  return shifted({ digits, places: behind.length }, Number(power));
}

/** The number times ten to the power of `by`. */
export function shifted(number: Decimal, by: number): Decimal {
  const places = number.places - by;
  return places >= 0
    ? { digits: number.digits, places }
    : { digits: number.digits * 10n ** BigInt(-places), places: 0 };
}

/** Whether two are the same number: 1.50 is 1.5. */
export function same(a: Decimal, b: Decimal): boolean {
  const [x, y] = aligned(a, b);
  return x === y;
}

/** Below 0: the first is less; above 0: it is more. */
export function compare(a: Decimal, b: Decimal): number {
  const [x, y] = aligned(a, b);
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Whether `shown` is `exact`, rounded to the places that are shown. A half may go up or down. */
export function isRounded(exact: Decimal, shown: Decimal): boolean {
  const [x, y, unit] = aligned(exact, shown);
  const step = unit / 10n ** BigInt(shown.places);
  const apart = x > y ? x - y : y - x;
  return apart * 2n <= step;
}

/** False for numbers that are neither the same nor one rounded to the other: most are so far apart that doubles tell. */
export function mayBe(shown: Decimal, exact: Decimal): boolean {
  const [x, y] = [double(shown), double(exact)];
  return !(Math.abs(x - y) > 0.51 * 10 ** -shown.places + 1e-9 * Math.max(Math.abs(x), Math.abs(y)));
}

const double = ({ digits, places }: Decimal) => Number(digits) / 10 ** places;

/** Both digits at the same places, and how much one is at those places. */
function aligned(a: Decimal, b: Decimal): [bigint, bigint, bigint] {
  const places = Math.max(a.places, b.places);
  const at = (one: Decimal) => one.digits * 10n ** BigInt(places - one.places);
  return [at(a), at(b), 10n ** BigInt(places)];
}
