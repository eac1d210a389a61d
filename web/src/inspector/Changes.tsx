import type { CallView, DifferenceView, PlacedEntry } from "../api/types";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { EntryLink } from "./EntryLink";
import styles from "./Segments.module.css";
import { plannedOf } from "./words";

/** How a view differs from that of the call before. */
export function Changes({
  threadId,
  call,
  difference,
}: {
  threadId: string;
  call: CallView;
  difference: DifferenceView;
}) {
  const t = useT();
  const { entered, left, changed, same_tokens } = difference;
  return (
    <div className={styles["changes"]}>
      <p>{t("inspector.sameTokens", { n: number(same_tokens) })}</p>
      {call.why_planned && <p>{plannedOf(call.why_planned, t)}</p>}
      <List threadId={threadId} sign="+" title={t("inspector.entered")} entries={entered} />
      <List threadId={threadId} sign="−" title={t("inspector.left")} entries={left} />
      <List
        threadId={threadId}
        sign="~"
        title={t("inspector.changed")}
        entries={changed}
        noteOf={(seq) => {
          const found = changed.find((each) => each.seq === seq);
          return found ? `${t(`inspector.how.${found.was}`)} → ${t(`inspector.how.${found.now}`)}` : "";
        }}
      />
    </div>
  );
}

interface ListProps {
  threadId: string;
  sign: string;
  title: string;
  entries: readonly PlacedEntry[];
  noteOf?: (seq: number) => string;
}

function List({ threadId, sign, title, entries, noteOf }: ListProps) {
  const t = useT();
  if (!entries.length) return null;
  return (
    <section>
      <h4>{title}</h4>
      <ul className={styles["entries"]}>
        {entries.map(({ seq, id }) => (
          <li key={seq} className={styles["entryHead"]}>
            <span>
              <b aria-hidden="true">{sign}</b> {t("inspector.message", { n: seq })} <small>{noteOf?.(seq)}</small>
            </span>
            {id !== null && <EntryLink threadId={threadId} id={id} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
