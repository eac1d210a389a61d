import { QueryClient } from "@tanstack/react-query";
import { Problem } from "./problem";

/** What the server told. What it refused is not asked again by itself; what did not arrive is, twice. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 5_000, retry: (failures, error) => !(error instanceof Problem) && failures < 2 },
  },
});
