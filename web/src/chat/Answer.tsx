import type { Step } from "../stream/types";
import { Markdown } from "./Markdown";

interface AnswerProps {
  threadId: string;
  text: string;
  steps: readonly Step[];
  /** Whether it streams: numbers are traced when it is whole. */
  live: boolean;
}

export function Answer({ text }: AnswerProps) {
  return text === "" ? null : <Markdown text={text} />;
}
