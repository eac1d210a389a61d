import { useQuery } from "@tanstack/react-query";
import { endSession, endSessions, sessions } from "../api/account";
import { queryClient } from "../api/cache";
import type { LoginSessionView, MeView } from "../api/types";
import { useT } from "../i18n";
import { dayAndTime } from "../i18n/format";
import { LOGIN, leaveTo } from "../login/away";
import { forgetUser } from "../login/own";
import cards from "../settings/Cards.module.css";
import { Note, Part, Told } from "../settings/parts";
import { Button } from "../ui";
import styles from "./Forms.module.css";
import { browserOf } from "./browser";
import { leave } from "./leave";
import { useAct } from "./useAct";

const refresh = () => queryClient.invalidateQueries({ queryKey: ["sessions"] });

/** Where the user is logged in. */
export function Sessions({ user }: { user: MeView }) {
  const t = useT();
  const { busy, act } = useAct();
  const answer = useQuery({ queryKey: ["sessions"], queryFn: ({ signal }) => sessions(signal) });
  const end = ({ id, current }: LoginSessionView) => act(() => (current ? leave(user) : endSession(id).then(refresh)));
  const endAll = () =>
    act(async () => {
      await endSessions();
      forgetUser();
      leaveTo(LOGIN);
    });
  return (
    <Part title={t("account.sessions")} about={t("account.sessionsAbout")}>
      <Told answer={answer}>
        {({ sessions: found }) =>
          found.length === 0 ? (
            <Note>{t("account.noSessions")}</Note>
          ) : (
            <>
              <ul className={cards["cards"]}>
                {found.map((each) => (
                  <Session key={each.id} session={each} busy={busy} onEnd={() => void end(each)} />
                ))}
              </ul>
              <div>
                <Button disabled={busy} onClick={() => void endAll()}>
                  {t("account.logOutEverywhere")}
                </Button>
              </div>
            </>
          )
        }
      </Told>
    </Part>
  );
}

interface SessionProps {
  session: LoginSessionView;
  busy: boolean;
  onEnd: () => void;
}

function Session({ session, busy, onEnd }: SessionProps) {
  const t = useT();
  const name = browserOf(session.agent) || t("account.unknownBrowser");
  return (
    <li className={cards["card"]}>
      <div className={cards["text"]}>
        <h3 className={cards["name"]}>
          {name} {session.current && <span className={styles["badge"]}>{t("account.thisOne")}</span>}
        </h3>
        <p className={cards["fact"]}>
          {t("account.sessionSeen", { when: dayAndTime(session.seen_at), address: session.address || "–" })}
        </p>
        <p className={cards["fact"]}>{t("account.sessionEnds", { when: dayAndTime(session.ends_at) })}</p>
      </div>
      <Button
        disabled={busy}
        aria-label={session.current ? undefined : t("account.endSessionOf", { name })}
        onClick={onEnd}
      >
        {t(session.current ? "shell.logOut" : "account.endSession")}
      </Button>
    </li>
  );
}
