import { useQuery } from "@tanstack/react-query";
import { me } from "../api/account";
import { useT } from "../i18n";
import { Note, Told } from "../settings/parts";
import { Password } from "./Password";
import { Profile } from "./Profile";
import { Sessions } from "./Sessions";

/** What a user sees and changes of the own account. */
export function Account() {
  const t = useT();
  const answer = useQuery({ queryKey: ["me"], queryFn: ({ signal }) => me(signal) });
  return (
    <Told answer={answer}>
      {(user) =>
        user.via === "local" ? (
          <Note>{t("shell.unknown")}</Note>
        ) : (
          <>
            <Profile user={user} />
            {user.via !== "proxy" && <Password user={user} />}
            <Sessions user={user} />
          </>
        )
      }
    </Told>
  );
}
