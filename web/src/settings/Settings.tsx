import { Suspense, lazy } from "react";
import { useInfo, useUser } from "../api/server";
import { useT } from "../i18n";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { toSettings } from "../route";
import { follow } from "../sidebar/Row";
import { IconButton, Skeleton } from "../ui";
import styles from "./Settings.module.css";
import { Note } from "./parts";
import { PAGES, type SettingsPage, type ShownPage, pagesOf } from "./pages";

const SHOWN = Object.fromEntries(PAGES.map(({ id, load }) => [id, lazy(async () => ({ default: await load() }))]));

/** The settings: their pages, and the section of one that is shown. */
export function Settings({ section: named, name, part }: ShownPage) {
  const t = useT();
  const narrow = useWidth() === "narrow";
  const user = useUser();
  // Administrators see what everyone spent, others their own.
  const section = part === "usage" && user?.role === "admin" ? "usage" : named;
  const page = PAGES.find(({ id }) => id === section)?.of ?? section;
  const isLocal = useInfo().data?.auth.mode === "local";
  const pages = pagesOf(user);
  const sections = pages.filter(({ id, of }) => (of ?? id) === page);
  const Section = SHOWN[section];
  return (
    <div className={styles["scroll"]}>
      <div className={styles["settings"]}>
        <div className={styles["head"]}>
          {narrow && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
          <h1 className={styles["title"]}>{t("shell.settings")}</h1>
        </div>
        <nav className={styles["pages"]} aria-label={t("shell.settings")}>
          {pages
            .filter(({ of }) => of === undefined)
            .map(({ id }) => (
              <To key={id} section={id} current={id === page} className={styles["page"]} />
            ))}
        </nav>
        {sections.length > 1 && (
          <nav className={styles["sections"]} aria-label={t(`settings.page.${page}`)}>
            {sections.map(({ id }) => (
              <To key={id} section={id} current={id === section} className={styles["section"]} />
            ))}
          </nav>
        )}
        <Suspense fallback={<Skeleton label={t("list.loading")} />}>
          {isLocal && PAGES.find(({ id }) => id === section)?.for !== undefined ? (
            <Note>{t("shell.unknown")}</Note>
          ) : (
            Section && <Section section={section} name={name} part={part} />
          )}
        </Suspense>
      </div>
    </div>
  );
}

function To({
  section,
  current,
  className,
}: {
  section: SettingsPage;
  current: boolean;
  className: string | undefined;
}) {
  const t = useT();
  return (
    <a
      className={className}
      href={toSettings(section)}
      aria-current={current ? "page" : undefined}
      onClick={(event) => follow(event, toSettings(section))}
    >
      {t(`settings.page.${section}`)}
    </a>
  );
}
