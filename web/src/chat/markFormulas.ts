// Formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]` become code with a mark, which no sign of Markdown changes.

/** Begin the code of a formula in a line, and of one in a line of its own: characters of no language. */
export const INLINE = "\ue000";
export const DISPLAY = "\ue001";

const FENCE = /^ {0,3}(?<fence>`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\k<fence>[`~]*[^\S\n]*$|(?![\s\S]))/;
const CODE = /(?<!`)(?<ticks>`+)(?!`)[\s\S]{1,4000}?(?<!`)\k<ticks>(?!`)/;
const BLOCK = /\$\$(?<dollars>[\s\S]{1,4000}?)\$\$|\\\[(?<brackets>[\s\S]{1,4000}?)\\\]/;
/** As Pandoc has it: no space within the dollars, and no digit behind them. So most sums of money are none. Nor is what
 * begins or ends as the dollar of a heading, "Revenue ($)", or goes over the border of a cell. */
const LINE =
  /\\\((?<round>[\s\S]{1,2000}?)\\\)|(?<![\w$\\])\$(?=[^\s$)\]）】,;:])(?<dollar>(?:\\[^\n]|[^$\\\n|]){1,1000}?)(?<![\s([（【])\$(?![\w$])/;
const ANY = new RegExp([FENCE, CODE, /\\[$\\]/, BLOCK, LINE].map(({ source }) => `(?:${source})`).join("|"), "gm");
/** Between dollars, what begins as a sum of money is a formula only if it has a sign of one. */
const IS_FORMULA = /^[^\d.,]|[\\^_=]/;

/** The text, with its formulas as marked code. Code stays as it is. */
export function markFormulas(text: string): string {
  return text.replace(ANY, (whole, ...more) => {
    const { dollars, brackets, round, dollar } = more.at(-1) as Record<string, string | undefined>;
    const block = dollars ?? brackets;
    const written = block ?? round ?? dollar ?? "";
    const tex = written.replaceAll(/\s*\n[\s>]*/g, " ").trim();
    const isNone =
      tex === "" || tex.includes("`") || /\n\s*\n/.test(written) || (dollar !== undefined && !IS_FORMULA.test(tex));
    return isNone ? whole : `\`${block === undefined ? INLINE : DISPLAY}${tex}\``;
  });
}
