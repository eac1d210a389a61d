import { type ReactNode, Suspense, lazy } from "react";
import { bring, useT } from "../i18n";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { type SettingsPage, isCatalog, toSettings } from "../route";
import { follow } from "../sidebar/Row";
import { IconButton, Skeleton } from "../ui";
import { Appearance } from "./Appearance";
import { Memories } from "./Memories";
import { Models } from "./Models";
import styles from "./Settings.module.css";
import { Sources } from "./Sources";
import { Usage } from "./Usage";
import { BUILT } from "./pages";

const PAGES: Partial<Record<SettingsPage, () => ReactNode>> = { appearance: Appearance, models: Models, sources: Sources, memories: Memories, usage: Usage };

const Catalog = lazy(async () => {
  await bring(async (language) => (await (language === "zh" ? import("../i18n/zh/catalog") : import("../i18n/en/catalog"))).catalog);
  const { Catalog } = await import("../catalog/Catalog");
  return { default: Catalog };
});

/** The settings: their pages, and the one that is shown; `name` is the definition that is edited. */
export function Settings({ section, name }: { section: SettingsPage; name?: string | undefined }) {
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
        {isCatalog(section) ? (
          <Suspense fallback={<Skeleton label={t("list.loading")} />}>
            <Catalog key={section} kind={section} name={name} />
          </Suspense>
        ) : (
          <Page />
        )}
      </div>
    </div>
  );
}
