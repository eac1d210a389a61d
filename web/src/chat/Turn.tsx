import { memo, useMemo } from "react";
import { useT } from "../i18n";
import { Receipts } from "../results/Receipts";
import { cardsOf, resultsOf } from "../results/step";
import type { Conversation } from "../stream/conversation";
import type { Decided, Run, Step, Turn } from "../stream/types";
import { Button } from "../ui";
import { Answer } from "./Answer";
import { Ending } from "./Ending";
import { Footer } from "./Footer";
import { Markdown } from "./Markdown";
import { Question } from "./Question";
import { Steps } from "./Steps";
import styles from "./Turn.module.css";
import { Working } from "./Working";
import { suggestedIn, withoutLabel } from "./suggestions";
import { visible } from "./visible";

/** What a conversation is where it is only read. */
export interface Reading {
  threadId: string;
  get: () => { turns: readonly Turn[] };
}

interface TurnViewProps {
  /** In a `Conversation` there is something to do; in a `Reading` there is nothing. */
  conversation: Conversation | Reading;
  turn: Turn;
  isLast: boolean;
  editing: boolean;
  onEdit: (id: string | null) => void;
  onAsk: (question: string) => void;
}

const UNTRACED = { results: [], cards: [] };
const NONE: readonly Decided[] = [];

/** A question and what followed. It is drawn again when it changes, not when another one does. */
export const TurnView = memo(function TurnView({ conversation, turn, isLast, editing, onEdit, onAsk }: TurnViewProps) {
  const t = useT();
  const { question, run } = turn;
  const acting = "did" in conversation ? conversation : null;
  const running = run?.status === "running";
  const steps: readonly Step[] = run?.steps ?? turn.steps;
  const text = answerOf(turn);
  const model = run?.model ?? "";
  // What streams is not traced yet.
  const { results, cards } = useMemo(
    () =>
      running
        ? UNTRACED
        : { results: resultsOf(conversation.get().turns, turn, text), cards: cardsOf(steps, text, model) },
    [conversation, turn, steps, text, running, model],
  );
  const suggested = suggestedIn(withoutLabel(text, model), isLast && !running ? model : "");
  return (
    <article className={styles["turn"]}>
      {question && (
        <Question
          conversation={acting}
          question={question}
          askedBy={run?.askedBy ?? null}
          editing={editing}
          onEdit={(edits) => onEdit(edits ? turn.id : null)}
        />
      )}
      <Steps threadId={conversation.threadId} steps={steps} decided={run?.decided ?? NONE} running={running} />
      {run && <Notes run={run} />}
      <Receipts threadId={conversation.threadId} results={results} cards={cards} reads={acting === null}>
        <Answer threadId={conversation.threadId} text={suggested.text} cards={cards} />
        {suggested.questions.length > 0 && <Suggestions questions={suggested.questions} onAsk={onAsk} />}
        {run && running && <Working run={run} />}
        {run && run.unfinished !== "" && (
          <div className={styles["unfinished"]} data-unfinished>
            <Markdown text={run.unfinished} />
            <p className={styles["notSeen"]}>{t("chat.unfinished")}</p>
          </div>
        )}
        {run && <Ending conversation={acting} run={run} isLast={isLast} />}
        {!running && <Footer conversation={acting} turn={turn} text={text} onEdit={() => onEdit(turn.id)} />}
      </Receipts>
    </article>
  );
});

function Suggestions({ questions, onAsk }: { questions: readonly string[]; onAsk: (question: string) => void }) {
  const t = useT();
  return (
    <ul className={styles["suggestions"]} aria-label={t("chat.suggestions")}>
      {questions.map((question) => (
        <li key={question}>
          <Button onClick={() => onAsk(question)}>{question}</Button>
        </li>
      ))}
    </ul>
  );
}

/** What was answered: while the run is under way, what streams and may be the answer. */
export function answerOf({ run, said }: Turn): string {
  if (run === null) return said.map((entry) => entry.text).join("\n\n");
  return run.answer || (run.text && !run.text.withdrawn ? run.text.text : "");
}

function Notes({ run }: { run: Run }) {
  const t = useT();
  const by = (name: string | null) => (name && name !== "default" ? t("chat.byUser", { user: visible(name) }) : "");
  const lines = {
    approve: "chat.decidedApprove",
    edit: "chat.decidedEdit",
    reject: "chat.decidedReject",
    superseded: "chat.decidedSuperseded",
  } as const;
  // What failed is said below.
  const warnings = run.status === "failed" ? [] : run.warnings;
  if (run.decided.length + warnings.length === 0) return null;
  return (
    <div className={styles["notes"]}>
      {run.decided.map((each) => (
        <p key={each.id}>
          {t(lines[each.decision], { tool: each.tool, by: by(each.by) })} {each.message && visible(each.message)}
        </p>
      ))}
      {warnings.map((warning, place) => (
        <p key={place} className={styles["warning"]}>
          {warning}
        </p>
      ))}
    </div>
  );
}
