import { useState } from "react";
import type { ProjectView } from "../api/types";
import boards from "../boards/Boards.module.css";
import { Link } from "../chat/Link";
import { useT } from "../i18n";
import { sourceName } from "../layout/Chips";
import { chooseSource } from "../layout/choice";
import { useDocumentTitle } from "../layout/documentTitle";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { navigate, toNewIn, toProjects } from "../route";
import { Told } from "../settings/parts";
import { List } from "../sidebar/List";
import { Button, Dialog, Icon, IconButton } from "../ui";
import { ProjectSettings } from "./ProjectSettings";
import styles from "./Projects.module.css";
import { useProject } from "./queries";

/** A project: its conversations, and the way to a new one. */
export function ProjectPage({ id }: { id: string }) {
  const answer = useProject(id);
  return (
    <div className={boards["scroll"]}>
      <div className={boards["list"]}>
        <Told answer={answer}>{(project) => <Shown project={project} />}</Told>
      </div>
    </div>
  );
}

function Shown({ project }: { project: ProjectView }) {
  const t = useT();
  const [open, setOpen] = useState(false);
  useDocumentTitle(project.name);
  const begin = () => {
    const [source] = project.sources;
    if (source !== undefined) chooseSource(source);
    navigate(toNewIn(project.id));
  };
  return (
    <>
      <div className={boards["head"]}>
        {useWidth() === "narrow" && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
        <div className={styles["names"]}>
          <Link to={toProjects} className={styles["way"]}>
            {t("shell.projects")}
          </Link>
          <h1 className={boards["title"]} dir="auto">
            {project.name}
          </h1>
        </div>
        <div className={styles["acts"]}>
          <Button kind="primary" onClick={begin}>
            <Icon name="plus" size={16} />
            {t("shell.new")}
          </Button>
          <IconButton icon="settings" label={t("projects.settings")} onClick={() => setOpen(true)} />
        </div>
      </div>
      {project.sources.length > 0 && (
        <p className={boards["note"]} dir="auto">
          {t("projects.sources")}: {project.sources.map(sourceName).join(" · ")}
        </p>
      )}
      <div className={styles["conversations"]}>
        <List asked={{ q: "", archived: false, project: project.id }} active={null} />
      </div>
      <Dialog open={open} onClose={() => setOpen(false)} title={t("projects.settings")} place="broad">
        <ProjectSettings project={project} onDone={() => setOpen(false)} />
      </Dialog>
    </>
  );
}
