import { useQueries } from "@tanstack/react-query";
import { usage } from "../api/conversations";
import type { ConversationView, UsageView } from "../api/types";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { toConversation } from "../route";
import { follow } from "../sidebar/Row";
import { useList } from "../sidebar/list";
import styles from "./Usage.module.css";
import { Note, Part, Told } from "./parts";

const SHOWN = 20;

/** Tokens of the newest conversations. */
export function Usage() {
  const t = useT();
  const list = useList({ q: "", archived: false });
  const data = list.data?.pages[0]?.conversations.slice(0, SHOWN);
  return (
    <Part title={t("settings.usage")} about={t("settings.usageAbout", { n: SHOWN })}>
      <Told answer={{ ...list, data }}>
        {(items) => (items.length ? <Table items={items} /> : <Note>{t("list.none")}</Note>)}
      </Told>
    </Part>
  );
}

function Table({ items }: { items: ConversationView[] }) {
  const t = useT();
  const answers = useQueries({
    queries: items.map(({ id }) => ({
      queryKey: ["usage", id],
      queryFn: ({ signal }: { signal: AbortSignal }) => usage(id, signal),
    })),
  });
  const hasCost = answers.some(({ data }) => data?.models.some((each) => each.cost !== null));
  return (
    <div className={styles["scroll"]}>
      <table className={styles["table"]}>
        <thead>
          <tr>
            <th scope="col">{t("settings.conversation")}</th>
            <th scope="col">{t("settings.model")}</th>
            <th scope="col" className={styles["number"]}>
              {t("settings.calls")}
            </th>
            <th scope="col" className={styles["number"]}>
              {t("settings.input")}
            </th>
            <th scope="col" className={styles["number"]}>
              {t("settings.output")}
            </th>
            {hasCost && (
              <th scope="col" className={styles["number"]}>
                {t("settings.cost")}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item, index) => (
            <Rows key={item.id} item={item} usage={answers[index]?.data} hasCost={hasCost} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Rows({ item, usage, hasCost }: { item: ConversationView; usage: UsageView | undefined; hasCost: boolean }) {
  const t = useT();
  const to = toConversation(item.id);
  const models = usage?.models.length ? usage.models : [null];
  return models.map((each, index) => (
    <tr key={`${each?.model}/${each?.fallback}`}>
      {index === 0 && (
        <th scope="row" rowSpan={models.length} className={styles["name"]}>
          <a href={to} dir="auto" onClick={(event) => follow(event, to)}>
            {item.label || t("shell.untitled")}
          </a>
        </th>
      )}
      <td>{each?.fallback ? t("settings.fallbackOf", { model: each.model }) : each?.model}</td>
      <td className={styles["number"]}>{each && number(each.calls)}</td>
      <td className={styles["number"]}>{each && counted(each.input_tokens, each)}</td>
      <td className={styles["number"]}>{each && counted(each.output_tokens, each)}</td>
      {hasCost && <td className={styles["number"]}>{usage && each && costOf(each, usage.currency)}</td>}
    </tr>
  ));
}

/** Where the provider counted none of the calls, there is no number. */
const counted = (tokens: number, { calls, uncounted }: { calls: number; uncounted: number }) =>
  uncounted === calls ? "–" : `${uncounted ? "≥ " : ""}${number(tokens)}`;

/** What the counted tokens cost, where a price is set. Small amounts have more digits. */
function costOf(used: UsageView["models"][number], currency: string): string {
  if (used.cost === null || used.uncounted === used.calls) return "–";
  const digits = used.cost !== 0 && used.cost < 0.1 ? { maximumSignificantDigits: 2 } : {};
  return `${used.uncounted ? "≥ " : ""}${number(used.cost, { style: "currency", currency, ...digits })}`;
}
