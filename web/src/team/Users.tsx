import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { changeUser, eraseUser, logUserOut, makeLink, users } from "../api/administration";
import { useUser } from "../api/server";
import type { AccountView, OneTimeLink, UserBody } from "../api/types";
import { Confirm } from "../account/Confirm";
import forms from "../account/Forms.module.css";
import { budgetText, useCurrency } from "../account/budget";
import { useAct } from "../account/useAct";
import { useT } from "../i18n";
import { moment } from "../i18n/format";
import cards from "../settings/Cards.module.css";
import { Part, Told } from "../settings/parts";
import { Button, Dialog, IconButton, Menu, MenuChoices, MenuItem, MenuSeparator } from "../ui";
import { AddUser } from "./AddUser";
import { Budget } from "./Budget";
import { LinkMade } from "./LinkMade";
import { refreshUsers } from "./refresh";
import { ROLES } from "./roles";

/** The users, and how there are more. */
export function Users() {
  const t = useT();
  const answer = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => users(signal) });
  return (
    <Told answer={answer}>
      {({ users: found }) => (
        <>
          <AddUser />
          <Part title={t("settings.page.users")} about={t("team.usersAbout")}>
            <ul className={cards["cards"]}>
              {found.map((each) => (
                <User key={each.id} user={each} />
              ))}
            </ul>
          </Part>
        </>
      )}
    </Told>
  );
}

const BADGE = { disabled: "off", pending: "waits" } as const;

function User({ user }: { user: AccountView }) {
  const t = useT();
  const { busy, act } = useAct();
  const own = useUser()?.id === user.id;
  const [link, setLink] = useState<OneTimeLink | null>(null);
  const currency = useCurrency();
  const [erasing, setErasing] = useState(false);
  const [budgeting, setBudgeting] = useState(false);
  const name = user.display || user.name;
  const change = (body: UserBody) => void act(() => changeUser(user.id, body).then(refreshUsers));
  const isNew = user.status === "pending" && !user.has_password;
  const facts = [
    t(`account.role.${user.role}`),
    ...user.groups,
    user.email,
    user.budget && budgetText(user.budget, currency),
    user.seen_at === null ? t("team.neverSeen") : t("team.seen", { when: moment(user.seen_at) }),
  ].filter(Boolean);
  return (
    <li className={cards["card"]}>
      <div className={cards["text"]}>
        <h3 className={cards["name"]} dir="auto">
          {name}{" "}
          {user.status !== "active" && (
            <span className={forms["badge"]} data-kind={BADGE[user.status]}>
              {t(`team.status.${user.status}`)}
            </span>
          )}
          {own && <span className={forms["badge"]}>{t("team.you")}</span>}
        </h3>
        {name !== user.name && <p className={cards["fact"]}>{user.name}</p>}
        <p className={cards["fact"]}>{facts.join(" · ")}</p>
      </div>
      <Menu trigger={<IconButton icon="more" label={t("team.moreOf", { name })} disabled={busy} />}>
        <MenuChoices
          value={user.role}
          options={ROLES.map((value) => ({
            value,
            label: t(`account.role.${value}`),
            note: t(`team.roleAbout.${value}`),
          }))}
          onChoose={(role) => role !== user.role && change({ role })}
        />
        <MenuSeparator />
        <MenuItem
          icon="share"
          onClick={() =>
            void act(async () => setLink(await makeLink(user.id, isNew ? "invitation" : "reset").then(refreshed)))
          }
        >
          {t(isNew ? "team.newInvitation" : "team.newPasswordLink")}
        </MenuItem>
        <MenuItem icon="tag" onClick={() => setBudgeting(true)}>
          {t("team.budget")}
        </MenuItem>
        <MenuItem icon="leave" onClick={() => void act(() => logUserOut(user.id))}>
          {t("team.logOut")}
        </MenuItem>
        {!own && (
          <>
            <MenuSeparator />
            {user.status !== "active" && (
              <MenuItem icon="check" onClick={() => change({ status: "active" })}>
                {t(user.status === "pending" ? "team.letIn" : "team.enable")}
              </MenuItem>
            )}
            {user.status !== "disabled" && (
              <MenuItem icon="stop" danger onClick={() => change({ status: "disabled" })}>
                {t("team.disable")}
              </MenuItem>
            )}
            <MenuItem icon="trash" danger onClick={() => setErasing(true)}>
              {t("team.erase")}
            </MenuItem>
          </>
        )}
      </Menu>
      <Confirm
        open={erasing}
        title={t("team.eraseTitle", { name })}
        act={t("account.eraseNow")}
        busy={busy}
        onAct={() => void act(() => eraseUser(user.id).then(refreshUsers)).then(() => setErasing(false))}
        onClose={() => setErasing(false)}
      >
        <p>{t("team.eraseAbout")}</p>
      </Confirm>
      <Budget user={user} open={budgeting} onClose={() => setBudgeting(false)} />
      <Dialog open={link !== null} onClose={() => setLink(null)} title={t("team.link")}>
        <div className={forms["dialog"]}>
          {link && <LinkMade link={link} name={name} />}
          <div className={forms["end"]}>
            <Button onClick={() => setLink(null)}>{t("list.done")}</Button>
          </div>
        </div>
      </Dialog>
    </li>
  );
}

async function refreshed(link: OneTimeLink): Promise<OneTimeLink> {
  await refreshUsers();
  return link;
}
