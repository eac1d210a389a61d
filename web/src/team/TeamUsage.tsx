import { Spending } from "../account/Spending";
import { useT } from "../i18n";

/** What everyone spent. */
export function TeamUsage() {
  const t = useT();
  return (
    <Spending
      whose="admin"
      title={t("settings.usage")}
      about={t("team.usageAbout")}
      ways={["user", "key", "agent", "model", "day"]}
    />
  );
}
