import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import * as api from "../api/projects";
import { useUser } from "../api/server";
import type { ProjectView } from "../api/types";
import { Confirm } from "../account/Confirm";
import forms from "../account/Forms.module.css";
import { useAct } from "../account/useAct";
import { useT } from "../i18n";
import { sourceName } from "../layout/Chips";
import { navigate, toProjects } from "../route";
import { Button } from "../ui";
import { Field } from "../ui/Field";
import { Members } from "./Members";
import styles from "./Projects.module.css";
import { changesOf, draftOf, offered } from "./draft";
import { refreshProjectList, refreshProjects } from "./queries";

const LONGEST_INSTRUCTIONS = 8000;

/** What a project is, and who is in it. Only who manages it may change that. */
export function ProjectSettings({ project, onDone }: { project: ProjectView; onDone: () => void }) {
  const manages = project.may === "manage";
  const user = useUser();
  return (
    <div className={styles["settings"]}>
      {manages ? <About project={project} onDone={onDone} /> : <AboutRead project={project} />}
      {user && <Members project={project} user={user} onDone={onDone} />}
      {manages && <Delete project={project} />}
    </div>
  );
}

function AboutRead({ project }: { project: ProjectView }) {
  const t = useT();
  return (
    <section>
      <h3 className={styles["heading"]}>{t("projects.instructions")}</h3>
      <p className={styles["read"]} dir="auto">
        {project.instructions || t("projects.noInstructions")}
      </p>
    </section>
  );
}

function About({ project, onDone }: { project: ProjectView; onDone: () => void }) {
  const t = useT();
  const { busy, act } = useAct();
  const [draft, setDraft] = useState(() => draftOf(project));
  const { data } = useQuery({
    queryKey: ["sources", project.id],
    queryFn: ({ signal }) => api.sourcesOf(project.id, signal),
  });
  const changes = changesOf(project, draft);
  const sources = offered(project, data?.sources.map(({ name }) => name) ?? []);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (changes && (await act(() => api.change(project.id, changes).then(refreshProjects)))) onDone();
  };
  const choose = (source: string, chosen: boolean) =>
    setDraft({
      ...draft,
      sources: chosen ? [...draft.sources, source] : draft.sources.filter((each) => each !== source),
    });
  return (
    <form className={forms["wide"]} onSubmit={(event) => void save(event)}>
      <Field label={t("projects.name")}>
        {(given) => (
          <input
            {...given}
            required
            dir="auto"
            maxLength={200}
            autoComplete="off"
            value={draft.name}
            onChange={(event) => setDraft({ ...draft, name: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("projects.instructions")} hint={t("projects.instructionsAbout")}>
        {(given) => (
          <textarea
            {...given}
            dir="auto"
            rows={4}
            maxLength={LONGEST_INSTRUCTIONS}
            value={draft.instructions}
            onChange={(event) => setDraft({ ...draft, instructions: event.target.value })}
          />
        )}
      </Field>
      <fieldset className={forms["checks"]}>
        <legend>{t("projects.sources")}</legend>
        {sources.map((source) => (
          <label key={source} className={forms["check"]}>
            <input
              type="checkbox"
              checked={draft.sources.includes(source)}
              onChange={(event) => choose(source, event.target.checked)}
            />
            <span className={styles["source"]} dir="auto">
              {sourceName(source)}
            </span>
          </label>
        ))}
      </fieldset>
      <p className={forms["note"]}>{t("projects.sourcesAbout")}</p>
      <div className={forms["end"]}>
        <Button type="submit" kind="primary" disabled={busy || changes === null}>
          {t("projects.save")}
        </Button>
      </div>
    </form>
  );
}

function Delete({ project }: { project: ProjectView }) {
  const t = useT();
  const { busy, act } = useAct();
  const [asks, setAsks] = useState(false);
  const remove = async () => {
    await api.remove(project.id, project.conversations ? "delete" : "keep");
    navigate(toProjects, { replace: true });
    await refreshProjectList();
  };
  return (
    <>
      <div className={forms["buttons"]}>
        <Button kind="danger" onClick={() => setAsks(true)}>
          {t("projects.delete")}
        </Button>
      </div>
      <Confirm
        open={asks}
        title={t("projects.delete")}
        act={t("projects.deleteNow")}
        busy={busy}
        onAct={() => void act(remove)}
        onClose={() => setAsks(false)}
      >
        <p>{t("projects.deleteAsk", { name: project.name, n: project.conversations })}</p>
      </Confirm>
    </>
  );
}
