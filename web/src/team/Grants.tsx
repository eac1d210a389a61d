import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import * as api from "../api/administration";
import { queryClient } from "../api/cache";
import type { GrantView } from "../api/types";
import forms from "../account/Forms.module.css";
import { useAct } from "../account/useAct";
import { type MessageId, useT } from "../i18n";
import { Note, Told } from "../settings/parts";
import { Button, IconButton } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Grants.module.css";
import { grantsOf, textOf, toOf, waysOf } from "./grantItems";

interface GrantsProps {
  kind: api.GrantKind;
  /** The id of a definition, or the name of what has none. */
  item: string;
}

const refresh = () => queryClient.invalidateQueries({ queryKey: ["grants"] });

/** Who may use something, and change it. What is chosen holds at once. */
export function Grants({ kind, item }: GrantsProps) {
  const t = useT();
  const { busy, act } = useAct();
  const answer = useQuery({ queryKey: ["grants", kind], queryFn: ({ signal }) => api.grants(kind, signal) });
  const change = (grant: GrantView, may: GrantView["may"]) =>
    void act(() => api.grant({ kind, item, to_kind: grant.to_kind, to_id: grant.to_id, may }).then(refresh));
  return (
    <Told answer={answer}>
      {({ grants }) => {
        const found = grantsOf(grants, item);
        return (
          <div className={styles["grants"]}>
            <Note>{t("team.grantsAbout")}</Note>
            {found.length === 0 && <Note>{t("team.noGrants")}</Note>}
            <ul>
              {found.map((each) => (
                <Row
                  key={textOf(each)}
                  grant={each}
                  busy={busy}
                  onChange={(may) => change(each, may)}
                  onTakeBack={() => void act(() => api.takeBack(each).then(refresh))}
                />
              ))}
            </ul>
            <Add kind={kind} item={item} taken={new Set(found.map(textOf))} />
          </div>
        );
      }}
    </Told>
  );
}

const MAY: Record<GrantView["may"], MessageId> = { use: "team.may.use", edit: "team.may.edit" };

interface RowProps {
  grant: GrantView;
  busy: boolean;
  onChange: (may: GrantView["may"]) => void;
  onTakeBack: () => void;
}

function Row({ grant, busy, onChange, onTakeBack }: RowProps) {
  const t = useT();
  const name = grant.to_kind === "everyone" ? t("team.everyone") : (grant.to_name ?? grant.to_id);
  const ways = waysOf(grant.kind);
  return (
    <li className={styles["row"]}>
      <span className={styles["name"]} dir="auto">
        {name}
        {grant.to_kind === "group" && <small>{t("account.groups")}</small>}
        {grant.granted_by === "default" && <small>{t("team.byDefault")}</small>}
      </span>
      {ways.length === 1 ? (
        t(MAY[grant.may])
      ) : (
        <select
          className={styles["may"]}
          aria-label={t("team.mayOf", { name })}
          value={grant.may}
          disabled={busy}
          onChange={(event) => onChange(event.target.value === "edit" ? "edit" : "use")}
        >
          {ways.map((way) => (
            <option key={way} value={way}>
              {t(MAY[way])}
            </option>
          ))}
        </select>
      )}
      <IconButton icon="close" label={t("team.takeBack", { name })} disabled={busy} onClick={onTakeBack} />
    </li>
  );
}

function Add({ kind, item, taken }: GrantsProps & { taken: ReadonlySet<string> }) {
  const t = useT();
  const { busy, act } = useAct();
  const [to, setTo] = useState("");
  const groups = useQuery({ queryKey: ["groups"], queryFn: ({ signal }) => api.groups(signal) }).data?.groups ?? [];
  const users = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => api.users(signal) }).data?.users ?? [];
  const toGroups = groups.map(({ id, name }) => ({ value: textOf({ to_kind: "group", to_id: id }), name }));
  const toUsers = users
    .filter(({ role }) => role !== "admin")
    .map(({ id, display, name }) => ({ value: textOf({ to_kind: "user", to_id: id }), name: display || name }));
  const everyone = textOf({ to_kind: "everyone", to_id: "" });
  const left = (options: typeof toUsers) =>
    options
      .filter(({ value }) => !taken.has(value))
      .map(({ value, name }) => (
        <option key={value} value={value}>
          {name}
        </option>
      ));
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const may = new FormData(event.currentTarget).get("may") === "edit" ? "edit" : "use";
    if (await act(() => api.grant({ kind, item, ...toOf(to), may }).then(refresh))) setTo("");
  };
  return (
    <form className={styles["add"]} onSubmit={(event) => void add(event)}>
      <Field label={t("team.to")}>
        {(given) => (
          <select {...given} required value={to} onChange={(event) => setTo(event.target.value)}>
            <option value="" disabled>
              {t("shell.choose")}
            </option>
            {!taken.has(everyone) && <option value={everyone}>{t("team.everyone")}</option>}
            {toGroups.length > 0 && <optgroup label={t("account.groups")}>{left(toGroups)}</optgroup>}
            {toUsers.length > 0 && <optgroup label={t("team.toUsers")}>{left(toUsers)}</optgroup>}
          </select>
        )}
      </Field>
      {waysOf(kind).length > 1 && (
        <Field label={t("team.may")}>
          {(given) => (
            <select {...given} name="may">
              {waysOf(kind).map((way) => (
                <option key={way} value={way}>
                  {t(MAY[way])}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <div className={forms["end"]}>
        <Button type="submit" disabled={busy || to === ""}>
          {t("team.grant")}
        </Button>
      </div>
    </form>
  );
}
