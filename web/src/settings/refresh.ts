import { queryClient } from "../api/cache";

/** What can be asked is asked for again. */
export const refreshSources = () =>
  Promise.all(["sources", "info"].map((name) => queryClient.invalidateQueries({ queryKey: [name] })));
