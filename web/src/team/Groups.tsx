import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { addGroup, addMember, groups, members, removeGroup, removeMember, users } from "../api/administration";
import type { GroupView } from "../api/types";
import forms from "../account/Forms.module.css";
import { useAct } from "../account/useAct";
import { useT } from "../i18n";
import cards from "../settings/Cards.module.css";
import { Note, Part, Told } from "../settings/parts";
import { Button, Dialog, Disclosure, IconButton, classes } from "../ui";
import { Field } from "../ui/Field";
import styles from "./Groups.module.css";
import { refreshUsers } from "./refresh";

/** The groups, and who is in them. */
export function Groups() {
  const t = useT();
  const answer = useQuery({ queryKey: ["groups"], queryFn: ({ signal }) => groups(signal) });
  return (
    <Part title={t("settings.page.groups")} about={t("team.groupsAbout")}>
      <AddGroup />
      <Told answer={answer}>
        {({ groups: found }) =>
          found.length === 0 ? (
            <Note>{t("team.noGroups")}</Note>
          ) : (
            <ul className={cards["cards"]}>
              {found.map((each) => (
                <Group key={each.id} group={each} />
              ))}
            </ul>
          )
        }
      </Told>
    </Part>
  );
}

function AddGroup() {
  const t = useT();
  const { busy, act } = useAct();
  const [name, setName] = useState("");
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (await act(() => addGroup(name.trim()).then(refreshUsers))) setName("");
  };
  return (
    <form className={cards["form"]} onSubmit={(event) => void add(event)}>
      <input
        className={cards["input"]}
        aria-label={t("team.newGroup")}
        placeholder={t("team.newGroup")}
        required
        maxLength={200}
        autoComplete="off"
        dir="auto"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit" disabled={busy || name.trim() === ""}>
        {t("settings.add")}
      </Button>
    </form>
  );
}

function Group({ group }: { group: GroupView }) {
  const t = useT();
  const { act } = useAct();
  const [removing, setRemoving] = useState(false);
  const isLocal = group.origin === "local";
  return (
    <li className={classes(cards["card"], styles["card"])}>
      <div className={styles["group"]}>
        <Disclosure
          summary={
            <>
              <strong className={styles["name"]} dir="auto">
                {group.name}
              </strong>{" "}
              {t("team.members", { n: group.members })}
              {group.origin !== "local" && ` · ${t(`team.origin.${group.origin}`)}`}
            </>
          }
        >
          <Members group={group} isLocal={isLocal} />
        </Disclosure>
      </div>
      <IconButton icon="trash" label={t("team.removeGroup", { name: group.name })} onClick={() => setRemoving(true)} />
      <Dialog open={removing} onClose={() => setRemoving(false)} title={t("team.removeGroup", { name: group.name })}>
        <div className={forms["dialog"]}>
          <p>{t("team.removeGroupAbout")}</p>
          <div className={forms["end"]}>
            <Button onClick={() => setRemoving(false)}>{t("settings.cancel")}</Button>
            <Button
              kind="danger"
              onClick={() => {
                setRemoving(false);
                void act(() => removeGroup(group.id).then(refreshUsers));
              }}
            >
              {t("settings.remove")}
            </Button>
          </div>
        </div>
      </Dialog>
    </li>
  );
}

function Members({ group, isLocal }: { group: GroupView; isLocal: boolean }) {
  const t = useT();
  const { busy, act } = useAct();
  const answer = useQuery({
    queryKey: ["groups", group.id, "members"],
    queryFn: ({ signal }) => members(group.id, signal),
  });
  const everyone = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => users(signal), enabled: isLocal });
  const inside = new Set(answer.data?.users.map(({ id }) => id));
  const others = (everyone.data?.users ?? []).filter(({ id }) => !inside.has(id));
  return (
    <Told answer={answer}>
      {({ users: found }) => (
        <div className={styles["members"]}>
          {found.length === 0 && <Note>{t("team.noMembers")}</Note>}
          <ul>
            {found.map((each) => (
              <li key={each.id} className={styles["member"]}>
                <span dir="auto">{each.display || each.name}</span>
                {isLocal && (
                  <IconButton
                    icon="close"
                    label={t("team.removeMember", { name: each.display || each.name })}
                    disabled={busy}
                    onClick={() => void act(() => removeMember(group.id, each.id).then(refreshUsers))}
                  />
                )}
              </li>
            ))}
          </ul>
          {isLocal && others.length > 0 && (
            <Field label={t("team.addMember")}>
              {(given) => (
                <select
                  {...given}
                  value=""
                  disabled={busy}
                  onChange={(event) => void act(() => addMember(group.id, event.target.value).then(refreshUsers))}
                >
                  <option value="" disabled>
                    {t("team.chooseUser")}
                  </option>
                  {others.map((each) => (
                    <option key={each.id} value={each.id}>
                      {each.display || each.name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
        </div>
      )}
    </Told>
  );
}
