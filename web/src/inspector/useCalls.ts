import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import * as api from "../api/calls";
import type { CallInfo } from "../api/types";

/** The calls of the model in a conversation, oldest first, as far as they are loaded. They are asked for again when `now`
 * changes: each step of a run that is under way follows a call. */
export function useCalls(threadId: string, now: string) {
  const asked = useInfiniteQuery({
    queryKey: ["calls", threadId, now],
    queryFn: ({ pageParam, signal }) => api.calls(threadId, { limit: 100, before: pageParam }, signal),
    placeholderData: keepPreviousData,
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.before,
  });
  const calls: CallInfo[] | undefined = asked.data?.pages.toReversed().flatMap((page) => page.calls);
  return { asked, calls };
}
