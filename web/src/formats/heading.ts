// The heading of a column in words: `launch_year` is "launch year". Its name is told where somebody points at it.

const COUNT = /^count(?:_star)?\((?:\*|1)?\)$/i;
const AGGREGATE = /^(sum|avg|min|max)\("?([\p{L}\p{N}_]+)"?\)$/iu;
/** The names that the demo model gives: English has them in words already. */
const OURS = /^(?:(average|total|min|max)_)?([\p{L}\p{N}_]+?)(_count)?$/iu;
const NAMED_OURS = { average: "mean", total: "sum", min: "min", max: "max" } as const;
const NAMED = { sum: "sum", avg: "mean", min: "min", max: "max" } as const;

export interface HeadingWords {
  readonly count: string;
  readonly countOf: (field: string) => string;
  readonly aggregate: (aggregate: string, field: string) => string;
  readonly locale: string;
}

export function headingOf(column: string, words: HeadingWords): string {
  if (COUNT.test(column)) return words.count;
  const [, aggregate, field] = AGGREGATE.exec(column) ?? [];
  if (aggregate && field) return words.aggregate(NAMED[aggregate.toLowerCase() as keyof typeof NAMED], inWords(field));
  return words.locale.startsWith("zh") ? inChinese(column, words) : inWords(column);
}

/** `launches_count` and `average_price` say in English what they are. */
function inChinese(column: string, words: HeadingWords): string {
  const [, aggregate, field = "", counts] = OURS.exec(column) ?? [];
  if (aggregate && field && !counts) return words.aggregate(NAMED_OURS[aggregate.toLowerCase() as keyof typeof NAMED_OURS], inWords(field));
  return counts && !aggregate ? words.countOf(inWords(field)) : inWords(column);
}

function inWords(name: string): string {
  if (!/^[\p{L}\p{N}_]+$/u.test(name)) return name;
  return name.replace(/(\p{Ll})(\p{Lu})(?=\p{Ll})/gu, (_, before: string, next: string) => `${before} ${next.toLowerCase()}`).replace(/_+/g, " ").trim() || name;
}
