import { type ReactNode, Suspense, lazy } from "react";
import { bring, useT } from "../i18n";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { type SettingsPage, isCatalog, toSettings } from "../route";
import { follow } from "../sidebar/Row";
import { IconButton, Skeleton } from "../ui";
import { Memories } from "./Memories";
import { Models } from "./Models";
import styles from "./Settings.module.css";
import { Sources } from "./Sources";
import { You } from "./You";
import { LABELS, PAGES } from "./pages";

/** The editors, with their messages. */
const edits = async () => {
  await bring(
    async (language) =>
      (await (language === "zh" ? import("../i18n/zh/catalog") : import("../i18n/en/catalog"))).catalog,
  );
  return import("../catalog");
};
const Catalog = lazy(() => edits().then(({ Catalog }) => ({ default: Catalog })));
const Terms = lazy(() => edits().then(({ Terms }) => ({ default: Terms })));

interface Shown {
  section: SettingsPage;
  /** The definition that is edited, or the source of the terms. */
  name?: string | undefined;
  part?: string | undefined;
}

/** The settings: their pages, and the section of one that is shown. */
export function Settings({ section, name, part }: Shown) {
  const t = useT();
  const narrow = useWidth() === "narrow";
  const page = PAGES.find(({ sections }) => sections.some((each) => each === section)) ?? PAGES[0];
  return (
    <div className={styles["scroll"]}>
      <div className={styles["settings"]}>
        <div className={styles["head"]}>
          {narrow && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
          <h1 className={styles["title"]}>{t("shell.settings")}</h1>
        </div>
        <nav className={styles["pages"]} aria-label={t("shell.settings")}>
          {PAGES.map(({ id }) => (
            <To key={id} section={id} current={id === page.id} className={styles["page"]} />
          ))}
        </nav>
        {page.sections.length > 1 && (
          <nav className={styles["sections"]} aria-label={t(LABELS[page.id])}>
            {page.sections.map((each) => (
              <To key={each} section={each} current={each === section} className={styles["section"]} />
            ))}
          </nav>
        )}
        <Suspense fallback={<Skeleton label={t("list.loading")} />}>
          <Section section={section} name={name} part={part} />
        </Suspense>
      </div>
    </div>
  );
}

function Section({ section, name, part }: Shown): ReactNode {
  if (isCatalog(section)) return <Catalog key={section} kind={section} name={name} />;
  if (section === "terms") return <Terms source={name} />;
  if (section === "memories") return <Memories />;
  if (section === "data") return <Sources />;
  return section === "you" ? <You part={part} /> : <Models />;
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
      {t(LABELS[section])}
    </a>
  );
}
