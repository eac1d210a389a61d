import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queryClient } from "../api/cache";
import { keys, revokeKey } from "../api/keys";
import type { ApiKeyView, MeView, NewApiKeyView } from "../api/types";
import { useT } from "../i18n";
import { dayAndTime, moment, number } from "../i18n/format";
import cards from "../settings/Cards.module.css";
import { Note, Part, Told } from "../settings/parts";
import { Button } from "../ui";
import { Confirm } from "./Confirm";
import styles from "./Forms.module.css";
import { NewKey } from "./NewKey";
import { Secret } from "./Secret";
import { budgetText, useCurrency } from "./budget";
import { useAct } from "./useAct";

/** The user's API keys, and how there is another one. */
export function Keys({ user }: { user: MeView }) {
  const t = useT();
  const answer = useQuery({ queryKey: ["keys"], queryFn: ({ signal }) => keys(signal) });
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<NewApiKeyView | null>(null);
  const onMade = (key: NewApiKeyView) => {
    setMade(key);
    setMaking(false);
    void queryClient.invalidateQueries({ queryKey: ["keys"] });
  };
  return (
    <Part title={t("account.keys")} about={t("account.keysAbout")}>
      {made && <Secret label={t("account.keyMade", { name: made.name })} text={made.key} note={t("account.keyOnce")} />}
      <Told answer={answer}>
        {({ keys: found }) =>
          found.length === 0 ? (
            <Note>{t("account.noKeys")}</Note>
          ) : (
            <ul className={cards["cards"]}>
              {found.map((each) => (
                <Key key={each.id} of={each} />
              ))}
            </ul>
          )
        }
      </Told>
      {making ? (
        <NewKey isAdmin={user.role === "admin"} onMade={onMade} onCancel={() => setMaking(false)} />
      ) : (
        <div>
          <Button onClick={() => (setMade(null), setMaking(true))}>{t("account.keyMake")}</Button>
        </div>
      )}
    </Part>
  );
}

function Key({ of }: { of: ApiKeyView }) {
  const t = useT();
  const { busy, act } = useAct();
  const currency = useCurrency();
  const [revoking, setRevoking] = useState(false);
  const [now] = useState(Date.now);
  const expired = of.expires_at !== null && Date.parse(of.expires_at) < now;
  const limits = [
    of.agents && `${t("shell.agent")}: ${of.agents.join(", ")}`,
    of.models && `${t("shell.model")}: ${of.models.join(", ")}`,
    of.sources && `${t("shell.source")}: ${of.sources.join(", ")}`,
    of.budget && budgetText(of.budget, currency),
    of.requests_per_minute && t("account.aMinute", { n: number(of.requests_per_minute) }),
    of.parallel && t("account.atOnce", { n: number(of.parallel) }),
  ].filter(Boolean);
  const revoke = async () => {
    await act(async () => {
      await revokeKey(of.id);
      await queryClient.invalidateQueries({ queryKey: ["keys"] });
    });
    setRevoking(false);
  };
  return (
    <li className={cards["card"]}>
      <div className={cards["text"]}>
        <h3 className={cards["name"]} dir="auto">
          {of.name}{" "}
          {expired && (
            <span className={styles["badge"]} data-kind="off">
              {t("account.expired")}
            </span>
          )}
        </h3>
        <p className={cards["fact"]}>
          <code>lt_{of.id}_…</code> · {of.scopes.map((scope) => t(`account.scope.${scope}`)).join(", ")}
        </p>
        {limits.length > 0 && <p className={cards["fact"]}>{limits.join(" · ")}</p>}
        <p className={cards["fact"]}>
          {[
            of.seen_at === null ? t("account.neverUsed") : t("account.used", { when: moment(of.seen_at) }),
            of.expires_at === null ? t("account.noEnd") : t("account.sessionEnds", { when: dayAndTime(of.expires_at) }),
          ].join(" · ")}
        </p>
      </div>
      <Button disabled={busy} aria-label={t("account.revokeOf", { name: of.name })} onClick={() => setRevoking(true)}>
        {t("account.revoke")}
      </Button>
      <Confirm
        open={revoking}
        title={t("account.revokeOf", { name: of.name })}
        act={t("account.revoke")}
        busy={busy}
        onAct={() => void revoke()}
        onClose={() => setRevoking(false)}
      >
        <p>{t("account.revokeAbout")}</p>
      </Confirm>
    </li>
  );
}
