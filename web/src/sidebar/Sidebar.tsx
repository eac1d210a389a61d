import { useInfiniteQuery } from "@tanstack/react-query";
import { conversations } from "../api/conversations";
import { useT } from "../i18n";
import { navigate, toConversation } from "../route";

/** The list of conversations; `active` is the one that is shown. */
export function Sidebar({ active }: { active: string | null }) {
  const t = useT();
  const { data } = useInfiniteQuery({
    queryKey: ["conversations", ""],
    queryFn: ({ pageParam, signal }) => conversations({ cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  return (
    <ul>
      {data?.pages.flatMap((page) =>
        page.conversations.map(({ id, label }) => (
          <li key={id}>
            <button type="button" aria-current={id === active ? "page" : undefined} onClick={() => navigate(toConversation(id))}>
              {label || t("shell.untitled")}
            </button>
          </li>
        )),
      )}
    </ul>
  );
}
