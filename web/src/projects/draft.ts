// What a manager changes of a project, before it is saved.

import type { ProjectBody, ProjectView } from "../api/types";

export interface ProjectDraft {
  name: string;
  instructions: string;
  sources: readonly string[];
}

export const draftOf = ({ name, instructions, sources }: ProjectView): ProjectDraft => ({
  name,
  instructions,
  sources,
});

/** The fields that differ from what is kept; null: none does, or it has no name. */
export function changesOf(project: ProjectView, draft: ProjectDraft): ProjectBody | null {
  const name = draft.name.trim();
  if (name === "") return null;
  const hasSources = draft.sources.toSorted().join("\n") !== project.sources.toSorted().join("\n");
  const changes = {
    ...(name === project.name ? {} : { name }),
    ...(draft.instructions === project.instructions ? {} : { instructions: draft.instructions }),
    ...(hasSources ? { sources: [...draft.sources] } : {}),
  };
  return Object.keys(changes).length ? changes : null;
}

/** The sources that may be chosen: those of the project first, also what the manager may not use. */
export const offered = (project: ProjectView, known: readonly string[]): string[] => [
  ...new Set([...project.sources, ...known]),
];
