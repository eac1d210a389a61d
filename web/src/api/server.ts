import { useQuery } from "@tanstack/react-query";
import { agents, info } from "./conversations";
import { sources } from "./sources";

/** What the server serves. */
export const useInfo = () => useQuery({ queryKey: ["info"], queryFn: ({ signal }) => info(signal), staleTime: 60_000 });

/** The user who is logged in; null where the server asks for no login, and before that is known. */
export function useUser() {
  const auth = useInfo().data?.auth;
  return auth === undefined || auth.mode === "local" ? null : auth.user;
}

/** Who may open share links. */
export const useSharing = () => useInfo().data?.auth.share ?? "public";

/** The active agents, the one that is asked by default first. */
export const useAgents = () =>
  useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => agents(signal), select: (found) => found.agents });

/** The sources that a question may name. */
export const useSources = (enabled = true) =>
  useQuery({ queryKey: ["sources"], queryFn: ({ signal }) => sources(signal), enabled });
