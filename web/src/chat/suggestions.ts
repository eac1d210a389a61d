// What the demo model adds to its answers: that it is the demo model, which the page says, and questions to ask instead.

const LIST = /^(?:Try for example:|可以试试：)\n((?:- .+(?:\n|$))+)/m;
const LABEL = /\n*^\*(?:Demo model: rule-based, no AI\.|演示模型：基于规则，没有使用 AI。)\*\s*$/m;

export interface Suggested {
  /** The answer without them. */
  text: string;
  questions: readonly string[];
}

/** An answer without the line that says that it is of the demo model. */
export const withoutLabel = (text: string, model: string): string =>
  model === "demo" ? text.replace(LABEL, "") : text;

/** The questions that an answer of the demo model suggests; none in those of other models, whose lists may be anything. */
export function suggestedIn(text: string, model: string): Suggested {
  const found = model === "demo" ? LIST.exec(text) : null;
  if (found === null) return { text, questions: [] };
  const questions = (found[1] ?? "")
    .trim()
    .split("\n")
    .map((line) =>
      line
        .slice(2)
        .trim()
        .replace(/^(`+)(.*)\1$/, "$2"),
    );
  return { text: text.replace(found[0], "").trim(), questions };
}
