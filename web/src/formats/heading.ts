// The heading of a column in words: `launch_year` is "launch year". Its name is told where somebody points at it.

const COUNT = /^count(?:_star)?\((?:\*|1)?\)$/i;
const AGGREGATE = /^(sum|avg|min|max)\("?([\p{L}\p{N}_]+)"?\)$/iu;
/** Columns that say what was reckoned, as the demo model and many others name them. */
const COUNTED = /^([\p{L}\p{N}_]+?)_count$/iu;
const RECKONED = /^(average|total|min|max)_([\p{L}\p{N}_]+)$/iu;
const NAMED: Readonly<Record<string, string>> = {
  sum: "sum",
  total: "sum",
  avg: "mean",
  average: "mean",
  min: "min",
  max: "max",
};

export interface HeadingWords {
  readonly count: string;
  readonly countOf: (field: string) => string;
  readonly aggregate: (aggregate: string, field: string) => string;
  readonly locale: string;
}

export function headingOf(column: string, words: HeadingWords): string {
  if (COUNT.test(column)) return words.count;
  const [, aggregate, field] = AGGREGATE.exec(column) ?? [];
  if (aggregate && field) return words.aggregate(NAMED[aggregate.toLowerCase()] ?? aggregate, inWords(field));
  const isChinese = words.locale.startsWith("zh");
  const [, counted] = COUNTED.exec(column) ?? [];
  if (counted && (isChinese || counted.endsWith("s"))) return words.countOf(inWords(counted));
  const [, front, of] = RECKONED.exec(column) ?? [];
  // English has it in words: average price.
  if (isChinese && front && of) return words.aggregate(NAMED[front.toLowerCase()] ?? front, inWords(of));
  return inWords(column);
}

function inWords(name: string): string {
  if (!/^[\p{L}\p{N}_]+$/u.test(name)) return name;
  return (
    name
      .replace(/(\p{Ll})(\p{Lu})(?=\p{Ll})/gu, (_, before: string, next: string) => `${before} ${next.toLowerCase()}`)
      .replace(/_+/g, " ")
      .trim() || name
  );
}
