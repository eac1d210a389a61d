import type { ReactNode } from "react";
import { useT } from "../i18n";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { type SettingsPage, toSettings } from "../route";
import { follow } from "../sidebar/Row";
import { IconButton } from "../ui";
import { Agents } from "./Agents";
import { Appearance } from "./Appearance";
import { Memories } from "./Memories";
import { Models } from "./Models";
import styles from "./Settings.module.css";
import { Sources } from "./Sources";
import { Usage } from "./Usage";
import { BUILT } from "./pages";

const PAGES: Partial<Record<SettingsPage, () => ReactNode>> = { appearance: Appearance, models: Models, agents: Agents, sources: Sources, memories: Memories, usage: Usage };

/** The settings: their pages, and the one that is shown. */
export function Settings({ section }: { section: SettingsPage }) {
  const t = useT();
  const narrow = useWidth() === "narrow";
  const Page = PAGES[section] ?? Appearance;
  return (
    <div className={styles["scroll"]}>
      <div className={styles["settings"]}>
        <div className={styles["head"]}>
          {narrow && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
          <h1 className={styles["title"]}>{t("shell.settings")}</h1>
        </div>
        <nav className={styles["pages"]} aria-label={t("shell.settings")}>
          {BUILT.map((each) => (
            <a
              key={each}
              className={styles["page"]}
              href={toSettings(each)}
              aria-current={each === section ? "page" : undefined}
              onClick={(event) => follow(event, toSettings(each))}
            >
              {t(`settings.${each}`)}
            </a>
          ))}
        </nav>
        <Page />
      </div>
    </div>
  );
}
