// The heading of a column in words: `launch_year` is "launch year". Its name is told where somebody points at it.

const COUNT = /^count(?:_star)?\((?:\*|1)?\)$/i;
const AGGREGATE = /^(sum|avg|min|max)\("?([\p{L}\p{N}_]+)"?\)$/iu;
const NAMED = { sum: "sum", avg: "mean", min: "min", max: "max" } as const;

export interface HeadingWords {
  readonly count: string;
  readonly aggregate: (aggregate: string, field: string) => string;
}

export function headingOf(column: string, words: HeadingWords): string {
  if (COUNT.test(column)) return words.count;
  const [, aggregate, field] = AGGREGATE.exec(column) ?? [];
  if (aggregate && field) return words.aggregate(NAMED[aggregate.toLowerCase() as keyof typeof NAMED], inWords(field));
  return inWords(column);
}

function inWords(name: string): string {
  if (!/^[\p{L}\p{N}_]+$/u.test(name)) return name;
  return name.replace(/(\p{Ll})(\p{Lu})(?=\p{Ll})/gu, (_, before: string, next: string) => `${before} ${next.toLowerCase()}`).replace(/_+/g, " ").trim() || name;
}
