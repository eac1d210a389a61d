import type { CallInfo } from "../api/types";
import { useT } from "../i18n";
import { duration, number } from "../i18n/format";
import type { Run } from "../stream/types";
import styles from "./Timeline.module.css";
import { openInspector } from "./selection";
import { type Moment, timelineOf } from "./timeline";

/** The steps of a run. A call of the model leads to what it saw, a query to its rows. */
export function Timeline({ run, calls }: { run: Run; calls: readonly CallInfo[] }) {
  const t = useT();
  const moments = timelineOf(run, calls);
  return (
    <table className={styles["table"]}>
      <thead>
        <tr>
          <th scope="col">{t("inspector.step")}</th>
          <th scope="col">{t("inspector.after")}</th>
          <th scope="col">{t("inspector.took")}</th>
          <th scope="col">{t("inspector.tokensHead")}</th>
        </tr>
      </thead>
      <tbody>
        {moments.map((moment) => (
          <tr key={moment.key}>
            <td>
              <Name moment={moment} />
            </td>
            <td>{moment.after === null ? "" : `+${duration(moment.after)}`}</td>
            <td>{moment.took === null ? "" : duration(moment.took)}</td>
            <td>{moment.tokens && `${number(moment.tokens.input)} → ${number(moment.tokens.output)}`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Name({ moment }: { moment: Moment }) {
  const t = useT();
  const { kind, name, status, index, step } = moment;
  const title = kind === "model" ? t("inspector.modelCall") : name;
  const open =
    kind === "model"
      ? { tab: "context" as const, call: index ?? 0 }
      : step?.sql !== undefined && index !== null
        ? { tab: "query" as const, step: index }
        : null;
  return (
    <span className={styles["name"]}>
      <span className={styles[status]} role="img" aria-label={t(`inspector.step.${status}`)} />
      {open ? (
        <button type="button" className={styles["open"]} onClick={() => openInspector(open)}>
          {title}
        </button>
      ) : (
        <span>{title}</span>
      )}
    </span>
  );
}
