import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as api from "../api/administration";
import type { AuditRowView } from "../api/types";
import forms from "../account/Forms.module.css";
import { isMessage, t as say, useT } from "../i18n";
import { whole } from "../i18n/format";
import { Note, Part, Told } from "../settings/parts";
import { Button, Icon } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Audit.module.css";
import { ACTIONS } from "./actions";

const nameOf = (action: string) => {
  const id = `team.act.${action}`;
  return isMessage(id) ? say(id) : action;
};

/** What people did about access, the newest first. */
export function Audit() {
  const t = useT();
  const [asked, setAsked] = useState<api.AuditAsked>({ actor: "", action: "" });
  const people = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => api.users(signal) });
  const teams = useQuery({ queryKey: ["groups"], queryFn: ({ signal }) => api.groups(signal) });
  const names = new Map<string, string>([
    ...(people.data?.users ?? []).map(({ id, display, name }): [string, string] => [id, display || name]),
    ...(teams.data?.groups ?? []).map(({ id, name }): [string, string] => [id, name]),
  ]);
  const answer = useInfiniteQuery({
    queryKey: ["audit", asked],
    queryFn: ({ pageParam, signal }) => api.audit(asked, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ before }) => before,
  });
  return (
    <Part title={t("settings.page.audit")} about={t("team.auditAbout")}>
      <div className={forms["row"]}>
        <Field label={t("team.actor")}>
          {(given) => (
            <select
              {...given}
              value={asked.actor}
              onChange={(event) => setAsked({ ...asked, actor: event.target.value })}
            >
              <option value="">{t("team.anyone")}</option>
              {(people.data?.users ?? []).map((each) => (
                <option key={each.id} value={each.id}>
                  {each.display || each.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={t("team.action")}>
          {(given) => (
            <select
              {...given}
              value={asked.action}
              onChange={(event) => setAsked({ ...asked, action: event.target.value })}
            >
              <option value="">{t("team.anything")}</option>
              {ACTIONS.map((action) => (
                <option key={action} value={action}>
                  {nameOf(action)}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <div>
        <a className={styles["download"]} href={api.auditPath(asked)} download>
          <Icon name="download" size={16} />
          {t("team.auditDownload")}
        </a>
      </div>
      <Told answer={answer}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.rows);
          if (rows.length === 0) return <Note>{t("team.noAudit")}</Note>;
          return (
            <ol className={styles["rows"]}>
              {rows.map((row) => (
                <Row key={row.id} row={row} names={names} />
              ))}
            </ol>
          );
        }}
      </Told>
      {answer.hasNextPage && (
        <div>
          <Button disabled={answer.isFetchingNextPage} onClick={() => void answer.fetchNextPage()}>
            {t("list.moreConversations")}
          </Button>
        </div>
      )}
    </Part>
  );
}

/** `names` are those of users and groups, by their ids. */
function Row({ row, names }: { row: AuditRowView; names: ReadonlyMap<string, string> }) {
  const t = useT();
  const actor = row.actor_name ?? (row.actor || (row.via === "command" ? t("team.command") : t("team.nobody")));
  const detail = Object.entries(row.detail).map(
    ([name, value]) => `${name}: ${names.get(textOf(value)) ?? textOf(value)}`,
  );
  return (
    <li className={styles["row"]}>
      <p>
        <strong dir="auto">{actor}</strong> {nameOf(row.action)}{" "}
        {row.outcome === "failed" && (
          <span className={forms["badge"]} data-kind="off">
            {t("team.failed")}
          </span>
        )}
      </p>
      {(row.object || detail.length > 0) && (
        <p className={styles["detail"]}>
          {[names.get(row.object) ?? row.object, ...detail].filter(Boolean).join(" · ")}
        </p>
      )}
      <p className={styles["where"]}>{[whole(row.at), row.address, row.via].filter(Boolean).join(" · ")}</p>
    </li>
  );
}

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
