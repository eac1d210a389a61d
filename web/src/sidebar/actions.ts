// What is done with a conversation of the list. What fails is said.

import * as api from "../api/conversations";
import type { ConversationView } from "../api/types";
import { t } from "../i18n";
import { sentence } from "../i18n/sentence";
import { currentRoute, navigate, toConversation, toNew } from "../route";
import { conversation } from "../stream/opened";
import { say } from "../ui";
import { refreshList, removed, replaced } from "./list";

const UNDO_SECONDS = 10;

const failed = (error: unknown) => void say({ text: sentence(error), kind: "bad" });

/** Whether the change was made. */
export async function change(id: string, fields: { label?: string; tags?: string[] }): Promise<boolean> {
  try {
    replaced(await api.change(id, fields));
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

/** Deletes a conversation, which can be undone for ten seconds. */
export async function remove({ id, label }: { id: string; label: string }) {
  try {
    await api.remove(id, UNDO_SECONDS);
  } catch (error) {
    return failed(error);
  }
  removed(id);
  const wasShown = leave(id);
  const undo = async () => {
    try {
      await api.restore(id);
      if (wasShown) navigate(toConversation(id));
    } catch (error) {
      failed(error);
    }
    await refreshList();
  };
  say({
    text: t("list.deleted", { label: label || t("shell.untitled") }),
    stays: UNDO_SECONDS * 1000,
    action: { label: t("list.undo"), onClick: () => void undo() },
  });
}

/** Puts a conversation away, or takes it back. */
export async function archive(item: Pick<ConversationView, "id" | "label">, archived: boolean) {
  try {
    await api.change(item.id, { archived });
  } catch (error) {
    return failed(error);
  }
  removed(item.id);
  await refreshList();
  const label = item.label || t("shell.untitled");
  say({
    text: t(archived ? "list.archived" : "list.unarchived", { label }),
    action: { label: t("list.undo"), onClick: () => void archive(item, !archived) },
  });
}
