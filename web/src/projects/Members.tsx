import { type FormEvent, useState } from "react";
import * as api from "../api/projects";
import type { MeView, MemberView, ProjectView } from "../api/types";
import { useAct } from "../account/useAct";
import { useT } from "../i18n";
import { navigate, toProjects } from "../route";
import cards from "../settings/Cards.module.css";
import { Button, IconButton } from "../ui";
import styles from "./Projects.module.css";
import { refreshProjectList, refreshProjects } from "./queries";

const RIGHTS = ["use", "manage"] as const;

interface MembersProps {
  project: ProjectView;
  user: Pick<MeView, "id">;
  onDone: () => void;
}

/** Who is in a project. Everybody may leave it. */
export function Members({ project, user, onDone }: MembersProps) {
  const t = useT();
  const { busy, act } = useAct();
  const manages = project.may === "manage";
  const leave = async () => {
    await api.removeMember(project.id, user.id);
    onDone();
    navigate(toProjects, { replace: true });
    await refreshProjectList();
  };
  const remove = ({ id }: MemberView) =>
    act(id === user.id ? leave : () => api.removeMember(project.id, id).then(refreshProjects));
  return (
    <section>
      <h3 className={styles["heading"]}>{t("projects.members")}</h3>
      <ul>
        {project.members.map((each) => {
          const name = each.display || each.name;
          const isMe = each.id === user.id;
          return (
            <li key={each.id} className={styles["member"]}>
              <span className={styles["memberName"]} dir="auto">
                {name}
              </span>
              {manages ? (
                <select
                  className={styles["right"]}
                  aria-label={t("projects.mayOf", { name })}
                  value={each.may}
                  disabled={busy}
                  onChange={({ target }) =>
                    void act(() => api.setMember(project.id, each.id, rightOf(target.value)).then(refreshProjects))
                  }
                >
                  <Rights />
                </select>
              ) : (
                <span>{t(`projects.may.${each.may}`)}</span>
              )}
              {(manages || isMe) && (
                <IconButton
                  icon={isMe ? "leave" : "close"}
                  label={isMe ? t("projects.leave") : t("projects.removeMember", { name })}
                  disabled={busy}
                  onClick={() => void remove(each)}
                />
              )}
            </li>
          );
        })}
      </ul>
      {manages && <AddMember project={project} />}
    </section>
  );
}

const rightOf = (value: string): MemberView["may"] => (value === "manage" ? "manage" : "use");

function Rights() {
  const t = useT();
  return RIGHTS.map((each) => (
    <option key={each} value={each}>
      {t(`projects.may.${each}`)}
    </option>
  ));
}

function AddMember({ project }: { project: ProjectView }) {
  const t = useT();
  const { busy, act } = useAct();
  const [name, setName] = useState("");
  const [may, setMay] = useState<MemberView["may"]>("use");
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (await act(() => api.setMember(project.id, name.trim(), may).then(refreshProjects))) setName("");
  };
  return (
    <form className={cards["form"]} onSubmit={(event) => void add(event)}>
      <input
        className={cards["input"]}
        aria-label={t("projects.addMember")}
        placeholder={t("projects.addMember")}
        required
        maxLength={200}
        autoComplete="off"
        dir="auto"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <select
        className={styles["right"]}
        aria-label={t("projects.may")}
        value={may}
        onChange={({ target }) => setMay(rightOf(target.value))}
      >
        <Rights />
      </select>
      <Button type="submit" disabled={busy || name.trim() === ""}>
        {t("settings.add")}
      </Button>
    </form>
  );
}
