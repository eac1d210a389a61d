import { Suspense, lazy, useDeferredValue, useState } from "react";
import { useInfo, useUser } from "../api/server";
import { useT } from "../i18n";
import { openPalette } from "../palette/open";
import { toBoards, toNew, toProjects, toSettings, useRoute } from "../route";
import { Icon, IconButton, classes } from "../ui";
import { List } from "./List";
import { follow } from "./Row";
import styles from "./Sidebar.module.css";
import { useList } from "./list";

const TagBar = lazy(() => import("./TagBar"));
const ProjectLinks = lazy(() => import("../projects/ProjectLinks"));
const UserMenu = lazy(() => import("../account/UserMenu"));

/** New, search, the list of conversations, and the way to the settings. `active` is the conversation that is shown. */
export function Sidebar({ active }: { active: string | null }) {
  const t = useT();
  const [text, setText] = useState("");
  const [archived, setArchived] = useState(false);
  const [tag, setTag] = useState("");
  const { data } = useList({ q: "", archived: false });
  const hasTags = tag !== "" || data?.pages.some((page) => page.conversations.some(({ tags }) => tags.length > 0));
  const q = useDeferredValue(text.trim());
  const { data: info } = useInfo();
  const user = useUser();
  const route = useRoute();
  return (
    <>
      <div className={styles["head"]}>
        <img src="/icon.svg" alt="" width={22} height={22} />
        <span className={styles["brand"]}>Longthread</span>
        <IconButton icon="search" label={t("shell.palette")} keys="Mod+K" onClick={openPalette} />
      </div>
      <a className={styles["new"]} href={toNew} onClick={(event) => follow(event, toNew)}>
        <Icon name="plus" />
        {t("shell.new")}
      </a>
      <a
        className={classes(styles["link"], styles["boards"])}
        href={toBoards}
        onClick={(event) => follow(event, toBoards)}
      >
        <Icon name="board" size={16} />
        {t("shell.boards")}
      </a>
      <a
        className={classes(styles["link"], styles["boards"])}
        href={toProjects}
        onClick={(event) => follow(event, toProjects)}
      >
        <Icon name="folder" size={16} />
        {t("shell.projects")}
      </a>
      <Suspense>
        <ProjectLinks active={route.page === "projects" ? route.id : null} />
      </Suspense>
      <input
        type="search"
        className={styles["search"]}
        aria-label={t("list.search")}
        placeholder={t("list.search")}
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {hasTags && !archived && (
        <Suspense>
          <TagBar chosen={tag} onChoose={setTag} />
        </Suspense>
      )}
      {archived && (
        <div className={styles["archive"]}>
          <IconButton icon="left" label={t("list.back")} onClick={() => setArchived(false)} />
          <h2 className={styles["title"]}>{t("list.archive.shown")}</h2>
        </div>
      )}
      <List asked={{ q, archived, ...(tag && !archived ? { tag } : {}) }} active={active} />
      <div className={styles["foot"]}>
        <button type="button" className={styles["link"]} aria-pressed={archived} onClick={() => setArchived(!archived)}>
          <Icon name="archive" size={16} />
          {t("list.archive.shown")}
        </button>
        <a
          className={styles["link"]}
          href={toSettings("models")}
          onClick={(event) => follow(event, toSettings("models"))}
        >
          <Icon name="settings" size={16} />
          {t("shell.settings")}
        </a>
        {user && (
          <Suspense fallback={<span className={styles["link"]} />}>
            <UserMenu user={user} />
          </Suspense>
        )}
        <p className={styles["about"]} title={info?.database ?? undefined}>
          {info && `Longthread ${info.version}`}
        </p>
      </div>
    </>
  );
}
