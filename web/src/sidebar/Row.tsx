import { type KeyboardEvent, type MouseEvent, Suspense, lazy, useRef, useState } from "react";
import { exportPath } from "../api/conversations";
import { useSharing } from "../api/server";
import type { ConversationView } from "../api/types";
import { type MessageId, useT } from "../i18n";
import { whole } from "../i18n/format";
import { agentName } from "../layout/Chips";
import { openApps, openMove, openShare } from "../palette/open";
import { navigate, toConversation } from "../route";
import { Dialog, IconButton, Menu, MenuItem, MenuLink, MenuSeparator, classes } from "../ui";
import styles from "./Row.module.css";
import { archive, askToRemove, change, pin } from "./actions";

const TagsForm = lazy(() => import("./TagsForm"));

interface TagsProps {
  item: { id: string; tags: readonly string[] };
  open: boolean;
  onClose: () => void;
}

/** The dialog with a conversation's tags. */
export function Tags({ item, open, onClose }: TagsProps) {
  const t = useT();
  return (
    <Dialog open={open} onClose={onClose} title={t("list.tags")}>
      <Suspense>
        <TagsForm item={item} onDone={onClose} />
      </Suspense>
    </Dialog>
  );
}

/** What there is to know, or to do, about a conversation. */
export function markOf(item: ConversationView): { id: MessageId; kind: "live" | "warn" } | null {
  if (item.status === "waiting") return { id: "list.waits", kind: "warn" };
  if (item.waiting_below.length) return { id: "list.waitsBelow", kind: "warn" };
  if (item.status === "interrupted") return { id: "list.interrupted", kind: "warn" };
  if (item.status === "running") return { id: "list.running", kind: "live" };
  return null;
}

/** Follows a link within the page; with ⌘ or Ctrl it is the browser's. */
export function follow(event: MouseEvent, to: string) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  navigate(to);
}

export function Row({ item, active }: { item: ConversationView; active: boolean }) {
  const t = useT();
  const [doing, setDoing] = useState<"renames" | "tags" | null>(null);
  const name = item.label || t("shell.untitled");
  const mark = markOf(item);
  // What a search found is shown where it was said.
  const to = toConversation(item.id, item.match?.message ?? undefined);
  if (doing === "renames") {
    return (
      <li className={styles["row"]}>
        <Rename item={item} onDone={() => setDoing(null)} />
      </li>
    );
  }
  return (
    <li className={styles["row"]} data-id={item.id}>
      <a
        className={classes(styles["open"], active && styles["active"])}
        href={to}
        aria-current={active ? "page" : undefined}
        title={`${name}\n${whole(item.last_active_at)}`}
        onClick={(event) => follow(event, to)}
      >
        <span className={styles["first"]}>
          {mark && <span className={classes(styles["dot"], styles[mark.kind])} />}
          <span className={styles["name"]} dir="auto">
            {name}
          </span>
        </span>
        {mark && <span className={mark.kind === "warn" ? styles["mark"] : "unseen"}>{t(mark.id)}</span>}
        {item.match && item.match.text !== name && (
          <span className={styles["match"]} dir="auto">
            {item.match.text}
          </span>
        )}
        <Notes item={item} />
      </a>
      <RowMenu item={item} name={name} onRename={() => setDoing("renames")} onTags={() => setDoing("tags")} />
      <Tags item={item} open={doing === "tags"} onClose={() => setDoing(null)} />
    </li>
  );
}

/** With whom it is, questions that wait, and tags. */
function Notes({ item }: { item: ConversationView }) {
  const t = useT();
  const agent = item.agent && (item.agent.name ?? item.agent.id);
  if (!agent && !item.queued && !item.tags.length) return null;
  return (
    <span className={styles["notes"]}>
      {agent && <span dir="auto">{agentName(agent)}</span>}
      {item.queued > 0 && <span>{t("list.queued", { n: item.queued })}</span>}
      {item.tags.map((tag) => (
        <span key={tag} className={styles["tag"]} dir="auto">
          {tag}
        </span>
      ))}
    </span>
  );
}

interface RowMenuProps {
  item: ConversationView;
  name: string;
  onRename: () => void;
  onTags: () => void;
}

function RowMenu({ item, name, onRename, onTags }: RowMenuProps) {
  const t = useT();
  const shares = useSharing() !== "off";
  return (
    <Menu trigger={<IconButton icon="more" label={t("list.more", { label: name })} className={styles["more"]} />}>
      <NameItems onRename={onRename} onTags={onTags} />
      <PinItem item={item} />
      <ArchiveItem item={item} />
      {item.parent_id === null && <MoveItem id={item.id} />}
      {shares && (
        <MenuItem icon="share" onClick={() => openShare(item.id)}>
          {t("share.open")}
        </MenuItem>
      )}
      <MenuItem icon="code" onClick={() => openApps(item.id)}>
        {t("apps.open")}
      </MenuItem>
      <MenuSeparator />
      <ExportItems id={item.id} />
      <MenuSeparator />
      <DeleteItem item={item} />
    </Menu>
  );
}

export function NameItems({ onRename, onTags }: { onRename: () => void; onTags: () => void }) {
  const t = useT();
  return (
    <>
      <MenuItem icon="edit" onClick={onRename}>
        {t("list.rename")}
      </MenuItem>
      <MenuItem icon="tag" onClick={onTags}>
        {t("list.tags")}
      </MenuItem>
    </>
  );
}

export function PinItem({ item }: { item: Pick<ConversationView, "id" | "pinned_at"> }) {
  const t = useT();
  const isPinned = item.pinned_at !== null;
  return (
    <MenuItem icon="pin" onClick={() => void pin(item.id, !isPinned)}>
      {t(isPinned ? "list.unpin" : "list.pin")}
    </MenuItem>
  );
}

export function ArchiveItem({ item }: { item: Pick<ConversationView, "id" | "label" | "archived_at"> }) {
  const t = useT();
  const isArchived = item.archived_at !== null;
  return (
    <MenuItem icon="archive" onClick={() => void archive(item, !isArchived)}>
      {t(isArchived ? "list.unarchive" : "list.archive")}
    </MenuItem>
  );
}

export function MoveItem({ id }: { id: string }) {
  const t = useT();
  return (
    <MenuItem icon="folder" onClick={() => openMove(id)}>
      {t("list.move")}
    </MenuItem>
  );
}

export function DeleteItem({ item }: { item: Pick<ConversationView, "id" | "label"> }) {
  const t = useT();
  return (
    <MenuItem icon="trash" danger onClick={() => void askToRemove(item)}>
      {t("list.delete")}
    </MenuItem>
  );
}

/** The forms in which a conversation is saved. */
export function ExportItems({ id }: { id: string }) {
  const t = useT();
  return (["md", "details", "json", "jsonl"] as const).map((format) => (
    <MenuLink key={format} icon="download" href={exportPath(id, format)} download>
      {t(`list.export.${format}`)}
    </MenuLink>
  ));
}

/** The field in which a conversation gets another name. */
export function Rename({ item, onDone }: { item: Pick<ConversationView, "id" | "label">; onDone: () => void }) {
  const t = useT();
  // To take the field away takes the focus from it, which comes back here.
  const over = useRef(false);
  const done = async (text: string | null) => {
    if (over.current) return;
    over.current = true;
    const label = text?.trim();
    if (label && label !== item.label) await change(item.id, { label });
    onDone();
  };
  const press = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter") void done(event.currentTarget.value);
    if (event.key === "Escape") void done(null);
  };
  return (
    <input
      className={styles["rename"]}
      aria-label={t("list.label")}
      defaultValue={item.label}
      maxLength={200}
      autoFocus
      onFocus={(event) => event.currentTarget.select()}
      onKeyDown={press}
      onBlur={(event) => void done(event.currentTarget.value)}
    />
  );
}
