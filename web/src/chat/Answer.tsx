import { useDeferredValue } from "react";
import { receiptComponents, useReceiptPlugins } from "../results/Receipts";
import { ResultCard } from "../results/ResultCard";
import type { Card } from "../results/step";
import { Markdown } from "./Markdown";

interface AnswerProps {
  threadId: string;
  text: string;
  /** The results below it: none while it streams. */
  cards: readonly Card[];
}

export function Answer({ threadId, text, cards }: AnswerProps) {
  const plugins = useReceiptPlugins();
  // What is typed meanwhile comes first: text that streams is parsed when there is time.
  const shown = useDeferredValue(text);
  return (
    <>
      {shown !== "" && (
        <div data-answer>
          <Markdown text={shown} plugins={plugins} components={receiptComponents} />
        </div>
      )}
      {cards.map(({ step, charts }) => (
        <ResultCard key={step.callId} threadId={threadId} step={step} charts={charts} />
      ))}
    </>
  );
}
