import { queryClient } from "../api/cache";

/** Users and groups are asked for again. */
export const refreshUsers = () =>
  Promise.all(["users", "groups"].map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
