import { Secret } from "../account/Secret";
import type { OneTimeLink } from "../api/types";
import { useT } from "../i18n";
import { dayAndTime } from "../i18n/format";

/** Where a person sets a password, with this server's own address. */
export function LinkMade({ link, name }: { link: OneTimeLink; name: string }) {
  const t = useT();
  return (
    <Secret
      label={t("team.linkFor", { name })}
      text={location.origin + link.path}
      note={t("team.linkNote", { when: dayAndTime(link.expires_at) })}
    />
  );
}
