import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { Problem } from "../api/problem";
import * as api from "../api/shares";
import { Column, type ColumnHandle } from "../chat/Column";
import { whenLaidOut } from "../chat/inTurn";
import { TurnView } from "../chat/Turn";
import { useT } from "../i18n";
import { dayAndTime } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { useDocumentTitle } from "../layout/documentTitle";
import { turnOf } from "../stream/merge";
import type { Turn } from "../stream/types";
import { Button, Skeleton } from "../ui";
import styles from "./SharedPage.module.css";
import { partOf } from "./fold";

/** A conversation as it was when it was shared, read from its start as a document is. Nothing can be done in it. */
export function SharedPage({ token, at }: { token: string; at: string | null }) {
  const { data, error, hasNextPage, isFetching, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ["shared", token],
    queryFn: async ({ pageParam, signal }) => partOf(await api.shared(token, pageParam, signal)),
    initialPageParam: null as string | null,
    getNextPageParam: ({ before }) => before,
    staleTime: Infinity,
  });
  const parts = data?.pages;
  const turns = useMemo(() => parts?.toReversed().flatMap((part) => part.turns) ?? [], [parts]);
  // The pages lead from the end to the start.
  useEffect(() => {
    if (hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [hasNextPage, isFetching, error, fetchNextPage]);
  const isWhole = parts !== undefined && !hasNextPage;
  return (
    <main className={styles["page"]}>
      <Head label={parts?.[0]?.label} sharedAt={parts?.[0]?.sharedAt} />
      {isWhole ? (
        <Turns token={token} turns={turns} at={at} />
      ) : (
        <Absent error={error} onRetry={() => void (parts ? fetchNextPage() : refetch())} />
      )}
    </main>
  );
}

function Head({ label, sharedAt }: { label: string | undefined; sharedAt: string | undefined }) {
  const t = useT();
  const name = label === undefined ? t("share.title") : label || t("shell.untitled");
  useDocumentTitle(name);
  return (
    <>
      <header className={styles["head"]}>
        <img src="/icon.svg" alt="Longthread" width={22} height={22} />
        <h1 className={styles["title"]} dir="auto" title={name}>
          {name}
        </h1>
      </header>
      {sharedAt && <p className={styles["note"]}>{t("share.note", { when: dayAndTime(sharedAt) })}</p>}
    </>
  );
}

interface TurnsProps {
  token: string;
  turns: readonly Turn[];
  at: string | null;
}

function Turns({ token, turns, at }: TurnsProps) {
  const column = useRef<ColumnHandle>(null);
  useEffect(() => {
    const turn = at === null ? undefined : turnOf(turns, at);
    if (turn !== undefined) whenLaidOut(() => column.current?.toTurn(turn.id));
  }, [turns, at]);
  const reading = useMemo(() => ({ threadId: `s/${token}`, get: () => ({ turns }) }), [token, turns]);
  const render = useCallback(
    (turn: Turn) => (
      <TurnView conversation={reading} turn={turn} isLast={false} editing={false} onEdit={nothing} onAsk={nothing} />
    ),
    [reading],
  );
  return <Column ref={column} turns={turns} render={render} below={null} fromStart />;
}

const nothing = () => undefined;

/** What stands where the turns would be. */
function Absent({ error, onRetry }: { error: Error | null; onRetry: () => void }) {
  const t = useT();
  if (error === null) {
    return (
      <div className={styles["loads"]}>
        <Skeleton lines={6} label={t("chat.loading")} />
      </div>
    );
  }
  const isGone = error instanceof Problem && error.code === "share_not_found";
  return (
    <div role="alert" className={styles["absent"]}>
      <h2 className={styles["said"]}>{isGone ? t("share.gone") : sentence(error)}</h2>
      {isGone ? <p>{t("share.goneHelp")}</p> : <Button onClick={onRetry}>{t("shell.retry")}</Button>}
    </div>
  );
}
