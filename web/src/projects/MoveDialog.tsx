import * as api from "../api/projects";
import { useAct } from "../account/useAct";
import boards from "../boards/Boards.module.css";
import { useT } from "../i18n";
import { navigate, toProjects } from "../route";
import { Told } from "../settings/parts";
import { refreshList } from "../sidebar/list";
import { Button, Icon, say } from "../ui";
import styles from "./Projects.module.css";
import { refreshProjects, useProjects } from "./queries";

/** Where a conversation goes: into a project, or out of the one where it is. */
export function MoveDialog({ thread, onDone }: { thread: string; onDone: () => void }) {
  const t = useT();
  const { busy, act } = useAct();
  const answer = useProjects();
  const move = (project: string | null, said: string) =>
    act(async () => {
      await api.move(thread, project);
      onDone();
      say({ text: said });
      await Promise.all([refreshList(), refreshProjects()]);
    });
  return (
    <Told answer={answer}>
      {(found) => (
        <div className={boards["form"]}>
          <p className={boards["note"]}>{t(found.length ? "projects.moveAbout" : "projects.none")}</p>
          {found.length > 0 && (
            <ul>
              {found.map(({ id, name }) => (
                <li key={id}>
                  <button
                    type="button"
                    className={styles["place"]}
                    disabled={busy}
                    onClick={() => void move(id, t("projects.moved", { name }))}
                  >
                    <Icon name="folder" size={16} />
                    <span dir="auto">{name}</span>
                  </button>
                </li>
              ))}
              <li>
                <button
                  type="button"
                  className={styles["place"]}
                  disabled={busy}
                  onClick={() => void move(null, t("projects.movedOut"))}
                >
                  <Icon name="person" size={16} />
                  {t("projects.moveOut")}
                </button>
              </li>
            </ul>
          )}
          {found.length === 0 && (
            <div className={boards["buttons"]}>
              <Button onClick={() => (onDone(), navigate(toProjects))}>{t("projects.new")}</Button>
            </div>
          )}
        </div>
      )}
    </Told>
  );
}
