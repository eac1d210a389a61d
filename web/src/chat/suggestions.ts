// What the demo model suggests where it refuses: questions, behind a line that says so.

const LIST = /^(?:Try for example:|可以试试：)\n((?:- .+(?:\n|$))+)/m;

export interface Suggested {
  /** The answer without them. */
  text: string;
  questions: readonly string[];
}

/** The questions that an answer of the demo model suggests; none in those of other models, whose lists may be anything. */
export function suggestedIn(text: string, model: string): Suggested {
  const found = model === "demo" ? LIST.exec(text) : null;
  if (found === null) return { text, questions: [] };
  const questions = (found[1] ?? "").trim().split("\n").map((line) => line.slice(2).trim().replace(/^(`+)(.*)\1$/, "$2"));
  return { text: text.replace(found[0], "").trim(), questions };
}
