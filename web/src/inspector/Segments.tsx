import type { CallView, SeenEntry } from "../api/types";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { Disclosure } from "../ui";
import { Letter, colorOf } from "./Bar";
import { EntryLink } from "./EntryLink";
import styles from "./Segments.module.css";
import { Text } from "./Text";
import { type Part, partsOf } from "./tiers";
import { partTitle, reasonOf } from "./words";

/** The parts of a view in the order in which the model read them; each opens to its entries. */
export function Segments({ threadId, call }: { threadId: string; call: CallView }) {
  return (
    <ul className={styles["parts"]}>
      {partsOf(call).map((part) => (
        <li key={`${part.how} ${part.first} ${part.last}`} className={styles["part"]}>
          <span className={styles["edge"]} style={{ background: colorOf(part.tier) }} aria-hidden="true" />
          <Disclosure summary={<Summary part={part} call={call} />}>
            {part.how === "system" ? <System call={call} /> : <Entries threadId={threadId} entries={part.entries} />}
          </Disclosure>
        </li>
      ))}
    </ul>
  );
}

function Summary({ part, call }: { part: Part; call: CallView }) {
  const t = useT();
  const reason = reasonOf(part, call, t);
  return (
    <span className={styles["summary"]}>
      <span className={styles["title"]}>
        {part.tier !== "out" && <Letter tier={part.tier} />} {partTitle(part, t)}
      </span>
      <span className={styles["tokens"]}>{part.tier === "out" ? "" : number(part.tokens)}</span>
      {reason && <small className={styles["reason"]}>{reason}</small>}
    </span>
  );
}

function System({ call }: { call: CallView }) {
  const t = useT();
  return (
    <>
      <p className={styles["tools"]}>{t("inspector.tools", { tools: call.tools.join(", ") || "–" })}</p>
      <Text label={t("inspector.part.system")}>{call.system}</Text>
    </>
  );
}

function Entries({ threadId, entries }: { threadId: string; entries: readonly SeenEntry[] }) {
  const t = useT();
  return (
    <ul className={styles["entries"]}>
      {entries.map((entry) => (
        <li key={`${entry.seq} ${entry.how}`}>
          <div className={styles["entryHead"]}>
            <span>
              {entry.first !== null
                ? t("inspector.messages", { from: entry.first, to: entry.seq })
                : `${entry.seq} · ${roleOf(entry.role, t)}`}
            </span>
            <span className={styles["tokens"]}>{entry.tokens > 0 && number(entry.tokens)}</span>
            {entry.id !== null && <EntryLink threadId={threadId} id={entry.id} />}
          </div>
          {entry.text && <Text label={t("inspector.message", { n: entry.seq })}>{entry.text}</Text>}
        </li>
      ))}
    </ul>
  );
}

function roleOf(role: string, t: ReturnType<typeof useT>): string {
  if (role === "user" || role === "assistant" || role === "tool" || role === "system")
    return t(`inspector.role.${role}`);
  return role;
}
