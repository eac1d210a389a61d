import { useQuery } from "@tanstack/react-query";
import { useId, useMemo } from "react";
import * as api from "../api/boards";
import { Problem } from "../api/problem";
import type { ParameterView, SharedBoard, SharedCard } from "../api/types";
import { useT } from "../i18n";
import { dayAndTime } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { useDocumentTitle } from "../layout/documentTitle";
import { Button, Disclosure, Skeleton, classes } from "../ui";
import styles from "./Boards.module.css";
import { CardBody, CardNote, useShown } from "./CardBody";
import { parametersOfBoard, valuesText } from "./Values";
import { lookOf } from "./look";

/** A board as it was when it was shared. Nothing can be done in it. */
export function SharedBoard({ token }: { token: string }) {
  const t = useT();
  const { data, error, refetch } = useQuery({
    queryKey: ["sharedBoard", token],
    queryFn: ({ signal }) => api.shared(token, signal),
    staleTime: Infinity,
    retry: false,
  });
  const title = data?.title ?? t("boards.shared");
  useDocumentTitle(title);
  return (
    <main className={styles["page"]}>
      <header className={styles["bar"]}>
        <img src="/icon.svg" alt="Longthread" width={22} height={22} />
        <h1 className={styles["heading"]} dir="auto">
          {title}
        </h1>
      </header>
      {data && <p className={styles["sharedNote"]}>{t("boards.share.note", { when: dayAndTime(data.shared_at) })}</p>}
      {data ? <Cards board={data} /> : <Absent error={error} onRetry={() => void refetch()} />}
    </main>
  );
}

function Cards({ board }: { board: SharedBoard }) {
  const t = useT();
  // Rows that a refresh left have other values than those of other cards: each of these says its own.
  const differs = ({ name, value }: ParameterView) =>
    board.cards.some((card) => card.parameters.some((each) => each.name === name && each.value !== value));
  const parameters = parametersOfBoard(board).filter((each) => !differs(each));
  return (
    <div className={styles["scroll"]}>
      {parameters.length > 0 && (
        <dl className={styles["values"]} aria-label={t("boards.values")}>
          {parameters.map(({ name, label, value }) => (
            <div key={name} className={styles["value"]}>
              <dt>{label || name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
      <div className={styles["grid"]}>
        {board.cards.map((card) => (
          <SharedCardView key={card.id} card={card} values={valuesText(card.parameters.filter(differs))} />
        ))}
      </div>
    </div>
  );
}

function SharedCardView({ card, values }: { card: SharedCard; values: string }) {
  const t = useT();
  const id = useId();
  const look = useMemo(() => lookOf(card.look), [card.look]);
  const shown = useShown(card, look);
  return (
    <article className={classes(styles["card"], look.wide && styles["wide"])} aria-labelledby={id}>
      <header className={styles["cardHead"]}>
        <h2 id={id} className={styles["cardTitle"]} dir="auto" title={card.question}>
          {card.title}
        </h2>
      </header>
      <div className={styles["body"]}>
        <CardBody card={card} look={look} shown={shown} />
      </div>
      <div className={styles["cardFoot"]}>
        {values && <p className={styles["valuesRead"]}>{t("boards.card.values", { values })}</p>}
        <CardNote card={card} />
        <Disclosure summary={t("boards.card.query")}>
          <pre className={styles["query"]}>{card.sql}</pre>
        </Disclosure>
      </div>
    </article>
  );
}

function Absent({ error, onRetry }: { error: Error | null; onRetry: () => void }) {
  const t = useT();
  if (error === null) return <Skeleton lines={6} label={t("list.loading")} />;
  const isGone = error instanceof Problem && error.code === "share_not_found";
  return (
    <div role="alert" className={styles["none"]}>
      <h2 className={styles["said"]}>{isGone ? t("share.gone") : sentence(error)}</h2>
      {isGone ? <p>{t("share.goneHelp")}</p> : <Button onClick={onRetry}>{t("shell.retry")}</Button>}
    </div>
  );
}
