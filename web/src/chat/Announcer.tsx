import { useEffect, useRef } from "react";
import { useT } from "../i18n";
import type { Conversation } from "../stream/conversation";
import type { Run } from "../stream/types";
import { activityOf } from "./activity";
import { plainText } from "./plain";
import { withoutLabel } from "./suggestions";

/** Said to those who listen. Longer answers are read in their place. */
const LONGEST = 600;

/** What is over sooner is not said: it would come between. */
const SETTLED_MS = 2000;

/** At most `LONGEST` characters, and no part of a word. */
const beginning = (text: string) =>
  text.length > LONGEST ? `${text.slice(0, LONGEST).replace(/\s+\S*$/, "")} …` : text;

/** Says once what a run does, and what it came to, if it was begun here or went on while its conversation was open. */
export function Announcer({ conversation, run }: { conversation: Conversation; run: Run | null }) {
  const t = useT();
  const place = useRef<HTMLDivElement>(null);
  const before = useRef<{ id: string; status: string } | null>(null);
  useEffect(() => {
    const last = before.current;
    before.current = run && { id: run.id, status: run.status };
    if (run === null || place.current === null || run.status === "running") return;
    const wasSeen = last?.id === run.id && last.status === "running";
    if (!conversation.tookBegun(run.id) && !wasSeen) return;
    const answer = beginning(plainText(withoutLabel(run.answer, run.model)));
    const said =
      run.status === "waiting"
        ? t("chat.waitsForYou")
        : answer
          ? t("chat.answerReady", { text: answer })
          : t("chat.runEnded");
    place.current.textContent = said;
    if (document.hidden) void import("../notify/notify").then(({ notify }) => notify(said)).catch(() => undefined);
  }, [conversation, run, t]);
  const now = run?.status === "running" ? activityOf(run, t) : null;
  useEffect(() => {
    if (now === null) return;
    const timer = setTimeout(() => place.current && (place.current.textContent = now), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [now]);
  return <div ref={place} role="status" aria-live="polite" className="unseen" />;
}
