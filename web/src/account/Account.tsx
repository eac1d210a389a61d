import { useQuery } from "@tanstack/react-query";
import { me } from "../api/account";
import { useT } from "../i18n";
import { Told } from "../settings/parts";
import { Keys } from "./Keys";
import { MyData } from "./MyData";
import { Password } from "./Password";
import { Profile } from "./Profile";
import { Sessions } from "./Sessions";
import { Spending } from "./Spending";

/** What a user sees and changes of the own account. */
export function Account() {
  const t = useT();
  const answer = useQuery({ queryKey: ["me"], queryFn: ({ signal }) => me(signal) });
  return (
    <Told answer={answer}>
      {(user) => (
        <>
          <Profile user={user} />
          {user.via !== "proxy" && <Password user={user} />}
          <Sessions user={user} />
          <Keys user={user} />
          <Spending
            whose="me"
            title={t("account.usage")}
            about={t("account.usageAbout")}
            ways={["day", "model", "agent", "key"]}
          />
          <MyData user={user} />
        </>
      )}
    </Told>
  );
}
