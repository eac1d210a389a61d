// Projects as the server told them last.

import { useQuery } from "@tanstack/react-query";
import { queryClient } from "../api/cache";
import * as api from "../api/projects";

export const useProjects = () =>
  useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) => api.projects(signal),
    select: (found) => found.projects,
  });

export const useProject = (id: string) =>
  useQuery({ queryKey: ["projects", id], queryFn: ({ signal }) => api.project(id, signal), refetchOnMount: "always" });

/** The list alone: a project that is gone is not asked for again. */
export const refreshProjectList = () => queryClient.invalidateQueries({ queryKey: ["projects"], exact: true });
export const refreshProjects = () => queryClient.invalidateQueries({ queryKey: ["projects"] });
