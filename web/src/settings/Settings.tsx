import { useT } from "../i18n";
import type { SettingsPage } from "../route";

export function Settings({ section }: { section: SettingsPage }) {
  const t = useT();
  return (
    <h1>
      {t("shell.settings")} {section}
    </h1>
  );
}
