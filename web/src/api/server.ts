import { useQuery } from "@tanstack/react-query";
import { agents, info } from "./conversations";
import { sources } from "./sources";

/** What the server serves. */
export const useInfo = () => useQuery({ queryKey: ["info"], queryFn: ({ signal }) => info(signal), staleTime: 60_000 });

/** The active agents, the one that is asked by default first. */
export const useAgents = () =>
  useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => agents(signal), select: (found) => found.agents });

/** The sources that a question may name. */
export const useSources = (enabled = true) =>
  useQuery({ queryKey: ["sources"], queryFn: ({ signal }) => sources(signal), enabled });
