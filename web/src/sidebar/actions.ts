// What is done with a conversation of the list. What fails is said.

import * as api from "../api/conversations";
import { memoryOf } from "../api/memories";
import type { ConversationView } from "../api/types";
import { t } from "../i18n";
import { sentence } from "../i18n/sentence";
import { openDelete } from "../palette/open";
import { currentRoute, navigate, toConversation, toNew } from "../route";
import { conversation } from "../stream/opened";
import { say } from "../ui";
import { refreshList, refreshTags, removed, replaced } from "./list";

/** How long a deletion can be undone, and how long that is offered. */
const UNDO_SECONDS = 30;
const SHOWN_SECONDS = 10;
/** What a request may take on its way. */
const SPARE_SECONDS = 2;

const failed = (error: unknown) => void say({ text: sentence(error), kind: "bad" });

/** What fails is said, and still fails. */
async function tried<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    failed(error);
    throw error;
  }
}

/** Whether the change was made. */
export async function change(
  id: string,
  fields: { label?: string; tags?: string[]; pinned?: boolean },
): Promise<boolean> {
  try {
    replaced(await api.change(id, fields));
    if (fields.tags) void refreshTags();
    // The stream tells nothing of one that the list does not have.
    if (isShown(id)) void conversation(id).refresh();
    return true;
  } catch (error) {
    failed(error);
    return false;
  }
}

function isShown(id: string): boolean {
  const route = currentRoute();
  return route.page === "conversation" && route.id === id;
}

function leave(id: string): boolean {
  const wasShown = isShown(id);
  if (wasShown) navigate(toNew, { replace: true });
  return wasShown;
}

/** Deletes a conversation; if something was remembered from it alone, asks what shall become of that. */
export async function askToRemove(item: { id: string; label: string }) {
  // Where it cannot be told, what was remembered stays: that loses nothing.
  const memories = await memoryOf(item.id).then(
    ({ only_here }) => only_here.length,
    () => 0,
  );
  if (memories) openDelete(item.id, item.label, memories);
  else await remove(item, "keep");
}

/** Deletes a conversation, which can be undone for ten seconds, and longer while somebody points at what says so. */
export async function remove({ id, label }: { id: string; label: string }, memories: "keep" | "delete") {
  const until = performance.now() + (UNDO_SECONDS - SPARE_SECONDS) * 1000;
  try {
    await api.remove(id, UNDO_SECONDS, memories);
  } catch (error) {
    return failed(error);
  }
  removed(id);
  const wasShown = leave(id);
  const name = label || t("shell.untitled");
  const undo = async () => {
    await tried(api.restore(id));
    // Who looks at something else by now goes on with that.
    if (wasShown && currentRoute().page === "new") navigate(toConversation(id));
    await refreshList();
    return t("list.restored", { label: name });
  };
  say({
    text: t(memories === "keep" ? "list.deleted" : "list.deletedWithMemories", { label: name }),
    stays: SHOWN_SECONDS * 1000,
    until,
    about: id,
    action: { label: t("list.undo"), do: undo },
  });
}

/** Has the list show a conversation first, or no longer. */
export async function pin(id: string, pinned: boolean) {
  if (await change(id, { pinned })) await refreshList();
}

/** Puts a conversation away, or takes it back. */
export async function archive(item: Pick<ConversationView, "id" | "label">, archived: boolean) {
  const label = item.label || t("shell.untitled");
  const put = async (archived: boolean) => {
    await tried(api.change(item.id, { archived }));
    removed(item.id);
    await refreshList();
    return t(archived ? "list.archived" : "list.unarchived", { label });
  };
  const text = await put(archived).catch(() => null);
  if (text !== null) say({ text, about: item.id, action: { label: t("list.undo"), do: () => put(!archived) } });
}
