// The list as the server told it last, kept up to date by its events.

import { type InfiniteData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { queryClient } from "../api/cache";
import { conversations } from "../api/conversations";
import type { ConversationList, ConversationView } from "../api/types";
import { live } from "../stream/live";

export interface Asked {
  q: string;
  archived: boolean;
  tag?: string;
  pinned?: boolean;
  /** Those of a project, and not the own ones. */
  project?: string;
}

type Pages = InfiniteData<ConversationList, string | null>;

const KEY = "conversations";
const ALL = [KEY, { q: "", archived: false }];
const PINNED: Asked = { q: "", archived: false, pinned: true };
/** A list that came so short a time ago needs only what the stream's list has besides. */
const FRESH_MS = 3000;
const PROJECT_MS = 10_000;

/** Conversations, newest first, page by page; those that a search finds come at once. */
export const useList = (asked: Asked) =>
  useInfiniteQuery({
    queryKey: [KEY, asked],
    queryFn: ({ pageParam, signal }) =>
      conversations({ ...asked, cursor: pageParam, archived: asked.archived ? "only" : "exclude" }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: asked.project === undefined ? (previous) => previous : undefined,
    // The stream tells of the own ones alone.
    refetchInterval: asked.project === undefined ? false : PROJECT_MS,
    refetchOnMount: asked.project === undefined ? true : "always",
  });

/** The pinned ones, also those that the list has further below. */
export function usePinned(): readonly ConversationView[] {
  const { data } = useList(PINNED);
  return (
    data?.pages
      .flatMap((page) => page.conversations)
      .filter((each) => each.pinned_at !== null && each.archived_at === null) ?? []
  );
}

/** The conversations that agents have begun for one. */
export const useChildren = (parent: string, enabled: boolean) =>
  useQuery({ queryKey: [KEY, "below", parent], queryFn: ({ signal }) => conversations({ parent }, signal), enabled });

export const refreshList = () => queryClient.invalidateQueries({ queryKey: [KEY] });
export const refreshTags = () => queryClient.invalidateQueries({ queryKey: ["tags"] });

/** A change of one conversation, wherever it is listed. */
export function replaced(item: ConversationView) {
  queryClient.setQueriesData<Pages>(
    { queryKey: [KEY], predicate: ({ queryKey }) => queryKey[1] !== "below" },
    (data) => data && withPages(data, (each) => (each.id === item.id ? { ...each, ...item } : each)),
  );
}

/** Out of all lists, until they are asked for again. */
export function removed(id: string) {
  queryClient.setQueriesData<Pages>(
    { queryKey: [KEY], predicate: ({ queryKey }) => queryKey[1] !== "below" },
    (data) => data && withPages(data, (each) => (each.id === id ? null : each), id),
  );
}

function withPages(data: Pages, change: (item: ConversationView) => ConversationView | null, damaged?: string): Pages {
  const pages = data.pages.map((page) => ({
    ...page,
    conversations: page.conversations.map(change).filter((each) => each !== null),
    damaged: page.damaged.filter((id) => id !== damaged),
  }));
  return { ...data, pages };
}

/** One that is new, or has changed: the newest stands first. */
function heard(item: ConversationView) {
  const pins = queryClient.getQueryData<Pages>([KEY, PINNED])?.pages.flatMap((page) => page.conversations);
  const known = pins?.find(({ id }) => id === item.id)?.pinned_at ?? null;
  // Another tab has pinned it, or no longer.
  if (pins && known !== item.pinned_at) void queryClient.invalidateQueries({ queryKey: [KEY, PINNED] });
  replaced(item);
  if (item.parent_id !== null) return void queryClient.invalidateQueries({ queryKey: [KEY, "below", item.parent_id] });
  queryClient.setQueryData<Pages>(ALL, (data) => {
    const [first, ...rest] = data?.pages ?? [];
    if (!data || !first || item.archived_at) return data;
    const others = withPages(data, (each) => (each.id === item.id ? null : each)).pages;
    const before = others[0]?.conversations ?? [];
    const place = before.findIndex((each) => each.last_active_at <= item.last_active_at);
    const index = place < 0 ? before.length : place;
    // What belongs behind the first page is seen when that page is asked for again.
    if (place < 0 && first.next_cursor !== null) return { ...data, pages: [{ ...first }, ...rest] };
    return { ...data, pages: [{ ...first, conversations: before.toSpliced(index, 0, item) }, ...others.slice(1)] };
  });
}

/** The list's first page, which the stream tells at its start: something may have begun since the list was asked for. */
function heardAll({ conversations }: Pick<ConversationList, "conversations">) {
  const asked = queryClient.getQueryState(ALL);
  const isFresh = asked?.fetchStatus === "idle" && Date.now() - asked.dataUpdatedAt <= FRESH_MS;
  if (isFresh) conversations.forEach(heard);
  else void refreshList();
}

/** Keeps the lists up to date with what the server tells. */
export function useLiveList() {
  useEffect(
    () =>
      live().onList(({ name, data }) => {
        if (name === "conversation") heard(data);
        else if (name === "conversations") heardAll(data);
        else if (name === "archived") void refreshList();
        else if (name === "deleted") removed(data.id);
      }),
    [],
  );
}

/** A conversation of the list, if the list has it. */
export function useListed(id: string | null): ConversationView | null {
  const { data } = useList({ q: "", archived: false });
  return data?.pages.flatMap((page) => page.conversations).find((each) => each.id === id) ?? null;
}
