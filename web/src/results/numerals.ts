// The numbers that an answer says in words: where they stand, and what they are worth.

import { type Decimal, decimal } from "./decimal";

export interface Numeral {
  /** Where it stands in the text, with its sign, currency and unit. */
  readonly start: number;
  readonly end: number;
  /** As it is written, without currency and unit. */
  readonly digits: Decimal;
  /** Ten to this power: 3 for k, 4 for 万, 0 without a unit. */
  readonly power: number;
  readonly percent: boolean;
  /** A whole number from 1900 to 2100 without a separator or a unit: perhaps a year. */
  readonly year: boolean;
}

const POWERS: Readonly<Record<string, number>> = {
  k: 3,
  thousand: 3,
  千: 3,
  万: 4,
  萬: 4,
  十万: 5,
  m: 6,
  mn: 6,
  million: 6,
  millions: 6,
  百万: 6,
  千万: 7,
  亿: 8,
  億: 8,
  b: 9,
  bn: 9,
  billion: 9,
  billions: 9,
  十亿: 9,
  百亿: 10,
  千亿: 11,
  t: 12,
  tn: 12,
  trillion: 12,
  trillions: 12,
  万亿: 12,
};

const WORDS = "thousand|millions?|billions?|trillions?|mn|bn|tn";
const CHINESE = "万亿|千亿|百亿|十亿|千万|百万|十万|亿|億|万|萬|千";
// Single letters stand at the number, and are capitals but for the k: `5 m` are metres.
const UNIT = `(?:[\\s\\u00a0]?(?:${WORDS})(?![\\p{L}\\p{N}])|[\\s\\u00a0]?(?:${CHINESE})|[kKMBT](?![\\p{L}\\p{N}]))`;
const GROUPED = "\\d{1,3}(?:,\\d{3})+|\\d{1,3}(?:[\\u00a0\\u202f]\\d{3})+|\\d+";
const NUMERAL = new RegExp(
  `(?<![\\p{Script=Latin}\\p{N}_.,:/#\\\\])(?<sign>[-−+](?=[$€£¥￥]?\\d)|)(?:US)?[$€£¥￥]?(?<digits>(?:${GROUPED})(?:\\.\\d+)?)` +
    `(?<unit>${UNIT})?(?<percent>[\\s\\u00a0\\u202f]?[%％])?`,
  "gu",
);

// What looks like a number and is none. Each is blanked out before numbers are looked for.
const MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)[a-z]*\\.?";
const NONE = [
  /\[q\d+(?:\s*,\s*q\d+)*\]/g,
  /https?:\/\/\S+/g,
  /\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?/g,
  /\d{4}[/.]\d{1,2}[/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{4}|\d{4}-\d{2}(?![\d-])/g,
  /\d{1,2}:\d{2}(?::\d{2})?/g,
  new RegExp(
    `\\b${MONTHS}\\s+\\d{1,2}(?:st|nd|rd|th)?\\b(?:,?\\s+\\d{4})?|\\b\\d{1,2}(?:st|nd|rd|th)?\\s+${MONTHS}(?:,?\\s+\\d{4})?\\b`,
    "g",
  ),
  /(?:\d{4}\s*年\s*)?\d{1,2}\s*月(?:\s*\d{1,2}\s*[日号])?|第\s*\d+(?:\.\d+)?/g,
  /\d+(?:\.\d+){2,}/g,
  /\d+(?:st|nd|rd|th)\b|\bNo\.\s*\d+|#\d+/gi,
  /^\s*\d+[.)、]\s/gm,
];

/** The numbers of a text, in order; `names` are texts that hold digits and are none, such as `Falcon 9`. */
export function numerals(text: string, names: Iterable<string> = []): Numeral[] {
  const plain = blanked(halfWidth(text), names);
  const found: Numeral[] = [];
  for (const match of plain.matchAll(NUMERAL)) {
    const one = numeral(plain, match);
    if (one) found.push(one);
  }
  return found;
}

function numeral(text: string, match: RegExpMatchArray): Numeral | null {
  const { sign = "", digits = "", unit = "", percent = "" } = match.groups ?? {};
  const start = match.index ?? 0;
  const end = start + match[0].length;
  // `10-20` is a range, `3x` and `5GB` are no plain numbers, and `1,5` is one of another country.
  if (/^[\p{Script=Latin}\p{N}_]|^[.,:/]\d/u.test(text.slice(end))) return null;
  const negative = (sign === "-" || sign === "−") && !/[\p{L}\p{N})\]]$/u.test(text.slice(0, start));
  const read = decimal(`${negative ? "-" : ""}${digits.replace(/[,\u00a0\u202f]/g, "")}`);
  if (!read) return null;
  const power = POWERS[unit.trim()] ?? POWERS[unit.trim().toLowerCase()] ?? 0;
  const year = !unit && !percent && !sign && /^(?:19\d\d|20\d\d|2100)$/.test(digits);
  return { start, end, digits: read, power, percent: percent !== "", year };
}

/** Full-width digits and points as usual ones; each stays one character long. */
function halfWidth(text: string): string {
  return text
    .replace(/[０-９]/g, (each) => String.fromCharCode(each.charCodeAt(0) - 0xfee0))
    .replace(/(?<=\d)．(?=\d)/g, ".");
}

function blanked(text: string, names: Iterable<string>): string {
  let rest = text;
  for (const pattern of NONE) rest = rest.replace(pattern, (all) => " ".repeat(all.length));
  for (const name of [...names].toSorted((a, b) => b.length - a.length)) {
    if (rest.includes(name)) rest = withoutName(rest, name);
  }
  return rest;
}

function withoutName(text: string, name: string): string {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.replace(new RegExp(`(?<![A-Za-z0-9_])${escaped}(?![A-Za-z0-9_]|[.,]\\d)`, "g"), (all) =>
    " ".repeat(all.length),
  );
}
