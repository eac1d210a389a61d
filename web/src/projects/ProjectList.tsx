import { type FormEvent, useState } from "react";
import * as api from "../api/projects";
import { useAct } from "../account/useAct";
import boards from "../boards/Boards.module.css";
import { Link } from "../chat/Link";
import { useT } from "../i18n";
import { useDocumentTitle } from "../layout/documentTitle";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { navigate, toProject } from "../route";
import { Told } from "../settings/parts";
import { Button, IconButton } from "../ui";
import { refreshProjects, useProjects } from "./queries";

/** The projects of a user, and a new one. */
export function ProjectList() {
  const t = useT();
  const answer = useProjects();
  useDocumentTitle(t("shell.projects"));
  return (
    <div className={boards["scroll"]}>
      <div className={boards["list"]}>
        <div className={boards["head"]}>
          {useWidth() === "narrow" && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
          <h1 className={boards["title"]}>{t("shell.projects")}</h1>
        </div>
        <Told answer={answer}>
          {(found) =>
            found.length === 0 ? (
              <div className={boards["none"]}>
                <h2 className={boards["said"]}>{t("projects.none")}</h2>
                <p>{t("projects.noneHelp")}</p>
              </div>
            ) : (
              <ul className={boards["boards"]}>
                {found.map(({ id, name, conversations }) => (
                  <li key={id}>
                    <Link to={toProject(id)} className={boards["board"]}>
                      <span className={boards["name"]} dir="auto">
                        {name}
                      </span>
                      <span className={boards["meta"]}>{t("projects.conversations", { n: conversations })}</span>
                    </Link>
                  </li>
                ))}
              </ul>
            )
          }
        </Told>
        <NewProject />
      </div>
    </div>
  );
}

function NewProject() {
  const t = useT();
  const { busy, act } = useAct();
  const [name, setName] = useState("");
  const make = async () => {
    const { id } = await api.create(name.trim());
    await refreshProjects();
    navigate(toProject(id));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim()) void act(make);
  };
  return (
    <form className={boards["line"]} onSubmit={submit}>
      <input
        className={boards["input"]}
        aria-label={t("projects.name")}
        placeholder={t("projects.new")}
        dir="auto"
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit" disabled={busy || !name.trim()}>
        {t("projects.create")}
      </Button>
    </form>
  );
}
