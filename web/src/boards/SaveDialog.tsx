import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import * as api from "../api/boards";
import type { BoardSummary } from "../api/types";
import { chosenIn } from "../formats/chosen";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import type { ChartChoice } from "../results/choices";
import type { QueryResult } from "../results/result";
import { specQuery } from "../results/useSpec";
import { navigate, toBoard } from "../route";
import { useConversation } from "../stream/useConversation";
import { Button } from "../ui";
import styles from "./Boards.module.css";
import { type Look, jsonOf, withoutRows } from "./look";

interface SaveDialogProps {
  threadId: string;
  result: QueryResult;
  /** The chart that is shown; without one, the table is. */
  chart: ChartChoice | undefined;
  onDone: () => void;
}

const NEW = "";
const LONGEST = 200;

/** Saves a result to a board, as it is shown. */
export function SaveDialog({ threadId, result, chart, onDone }: SaveDialogProps) {
  const t = useT();
  const id = useId();
  const client = useQueryClient();
  const question = useQuestion(threadId, result.step);
  const [title, setTitle] = useState((chart?.title || question).slice(0, LONGEST));
  const { data } = useQuery({ queryKey: ["boards"], queryFn: ({ signal }) => api.boards(signal) });
  const boards = data?.boards ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const [name, setName] = useState(t("boards.mine"));
  const board = chosen ?? boards.at(-1)?.id ?? NEW;
  const saved = useMutation({
    mutationFn: async () => {
      const look = await lookOfResult();
      const to = board === NEW ? await api.create(name.trim()) : boards.find((each) => each.id === board);
      if (to === undefined || result.step === null) return null;
      // If that fails, the board is there: it is not made twice.
      setChosen(to.id);
      await client.invalidateQueries({ queryKey: ["boards"] });
      await api.save(to.id, { thread_id: threadId, step: result.step, title: title.trim(), look });
      return to;
    },
    onSuccess: (to) => {
      void client.invalidateQueries({ queryKey: ["board", to?.id] });
      void client.invalidateQueries({ queryKey: ["boards"] });
    },
  });
  const lookOfResult = async () => {
    const spec =
      chart && !chart.form ? withoutRows(await client.ensureQueryData(specQuery(threadId, result, chart))) : null;
    const look: Look = {
      view: chart ? "chart" : "table",
      wide: false,
      form: chart?.form ?? null,
      spec,
      formats: chosenIn(threadId),
    };
    return jsonOf(look);
  };
  const submit = (event: FormEvent) => (event.preventDefault(), saved.mutate());
  if (saved.data) return <Saved board={saved.data} onDone={onDone} />;
  return (
    <form className={styles["form"]} onSubmit={submit}>
      <p className={styles["note"]}>{t("boards.saveAbout")}</p>
      <div className={styles["field"]}>
        <label htmlFor={`${id}-title`}>{t("boards.edit.name")}</label>
        <input
          id={`${id}-title`}
          className={styles["input"]}
          value={title}
          maxLength={LONGEST}
          onChange={(event) => setTitle(event.target.value)}
        />
      </div>
      {boards.length > 0 && (
        <div className={styles["field"]}>
          <label htmlFor={`${id}-board`}>{t("boards.saveTo")}</label>
          <select
            id={`${id}-board`}
            className={styles["input"]}
            value={board}
            onChange={(event) => setChosen(event.target.value)}
          >
            {boards.map((each) => (
              <option key={each.id} value={each.id}>
                {each.title}
              </option>
            ))}
            <option value={NEW}>{t("boards.saveNew")}</option>
          </select>
        </div>
      )}
      {board === NEW && (
        <div className={styles["field"]}>
          <label htmlFor={`${id}-name`}>{t("boards.name")}</label>
          <input
            id={`${id}-name`}
            className={styles["input"]}
            value={name}
            maxLength={LONGEST}
            onChange={(event) => setName(event.target.value)}
          />
        </div>
      )}
      {saved.error && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(saved.error)}
        </p>
      )}
      <div className={styles["buttons"]}>
        <Button kind="quiet" onClick={onDone}>
          {t("boards.cancel")}
        </Button>
        <Button
          type="submit"
          kind="primary"
          disabled={data === undefined || saved.isPending || !title.trim() || (board === NEW && !name.trim())}
        >
          {t("boards.save")}
        </Button>
      </div>
    </form>
  );
}

function Saved({ board, onDone }: { board: BoardSummary; onDone: () => void }) {
  const t = useT();
  const open = () => {
    onDone();
    navigate(toBoard(board.id));
  };
  return (
    <div className={styles["form"]}>
      <p role="status">{t("boards.saved", { title: board.title })}</p>
      <div className={styles["buttons"]}>
        <Button kind="quiet" onClick={onDone}>
          {t("list.done")}
        </Button>
        <Button kind="primary" autoFocus onClick={open}>
          {t("boards.open")}
        </Button>
      </div>
    </div>
  );
}

/** The question that a step of a conversation belongs to. */
function useQuestion(threadId: string, step: number | null): string {
  const { data } = useConversation(threadId);
  const turn = data?.turns.find((each) => (each.run?.steps ?? each.steps).some(({ index }) => index === step));
  return turn?.question?.text ?? "";
}
