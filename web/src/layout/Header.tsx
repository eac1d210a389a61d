import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";
import { usage } from "../api/conversations";
import { useSharing } from "../api/server";
import type { ConversationView, UsageView } from "../api/types";
import { printAll } from "../chat/printing";
import { useT } from "../i18n";
import { brief, number } from "../i18n/format";
import { toggleInspector, useSelection } from "../inspector/selection";
import { openApps, openShare } from "../palette/open";
import { toConversation } from "../route";
import {
  ArchiveItem,
  DeleteItem,
  ExportItems,
  MoveItem,
  NameItems,
  PinItem,
  Rename,
  Tags,
  follow,
} from "../sidebar/Row";
import { useListed } from "../sidebar/list";
import { useConversation } from "../stream/useConversation";
import { IconButton, Menu, MenuItem, MenuSeparator } from "../ui";
import { agentName, named, sourceName } from "./Chips";
import styles from "./Header.module.css";
import { useAsksSource } from "./choice";
import { useDocumentTitle } from "./documentTitle";
import { useFiles } from "./files";
import { openDrawer } from "./drawer";
import { useWidth } from "./width";

/** The line above the column. */
export const Header = memo(function Header({ threadId }: { threadId: string | null }) {
  const t = useT();
  return (
    <header className={styles["header"]}>
      {useWidth() === "narrow" && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
      {threadId === null ? <NewTitle /> : <OpenConversation key={threadId} threadId={threadId} />}
    </header>
  );
});

type Doing = "renames" | "tags" | null;

function OpenConversation({ threadId }: { threadId: string }) {
  const [doing, setDoing] = useState<Doing>(null);
  const listed = useListed(threadId);
  const { data } = useConversation(threadId);
  // The list has all but old and archived ones, and knows a change first.
  const known = listed ?? (data && { ...data, archived_at: data.archivedAt, pinned_at: data.pinnedAt });
  const item = known && {
    id: threadId,
    label: known.label,
    tags: known.tags,
    archived_at: known.archived_at,
    pinned_at: known.pinned_at,
  };
  const done = () => setDoing(null);
  return (
    <>
      {doing === "renames" && item ? (
        <div className={styles["names"]}>
          <Rename item={item} onDone={done} />
        </div>
      ) : (
        <Title threadId={threadId} />
      )}
      <Tools threadId={threadId} item={item} onDo={setDoing} />
      {item && <Tags item={item} open={doing === "tags"} onClose={done} />}
    </>
  );
}

function NewTitle() {
  const t = useT();
  useDocumentTitle(null);
  return <h1 className={styles["title"]}>{t("shell.new")}</h1>;
}

function Title({ threadId }: { threadId: string }) {
  const t = useT();
  const { data } = useConversation(threadId);
  const listed = useListed(threadId);
  const known = listed ?? data;
  const name = known && (known.label || t("shell.untitled"));
  useDocumentTitle(name);
  const agent = data?.agent ?? listed?.agent?.name;
  const asks = useAsksSource(agent);
  const files = useFiles(known?.source ?? null);
  const { parent } = data ?? {};
  return (
    <>
      <div className={styles["names"]}>
        {parent && (
          <a
            className={styles["parent"]}
            href={toConversation(parent.id)}
            onClick={(event) => follow(event, toConversation(parent.id))}
          >
            {t("shell.askedIn", { label: parent.label || t("shell.untitled") })}
          </a>
        )}
        <h1 className={styles["title"]} dir="auto" title={name ?? undefined}>
          {name}
        </h1>
      </div>
      {known?.source && asks && (
        <Fact label={t("shell.source")} value={known.source} short={files ?? sourceName(named(known.source))} />
      )}
      {agent && <Fact label={t("shell.agent")} value={agentName(agent)} />}
    </>
  );
}

function Fact({ label, value, short = value }: { label: string; value: string; short?: string }) {
  return (
    <span className={styles["chip"]} title={`${label}: ${value}`}>
      <span className="unseen">{label}: </span>
      {short}
    </span>
  );
}

interface ToolsProps {
  threadId: string;
  item: Pick<ConversationView, "id" | "label" | "archived_at" | "pinned_at"> | null;
  onDo: (doing: Doing) => void;
}

function Tools({ threadId, item, onDo }: ToolsProps) {
  const t = useT();
  const isOpen = useSelection() !== null;
  const shares = useSharing() !== "off";
  const moves = !useConversation(threadId).data?.parent;
  return (
    <>
      <span className={styles["space"]} />
      <Tokens threadId={threadId} />
      {shares && <IconButton icon="share" label={t("share.open")} onClick={() => openShare(threadId)} />}
      <Menu trigger={<IconButton icon="more" label={t("shell.more")} />}>
        {item && (
          <>
            <NameItems onRename={() => onDo("renames")} onTags={() => onDo("tags")} />
            <PinItem item={item} />
            <ArchiveItem item={item} />
            {moves && <MoveItem id={threadId} />}
            <MenuSeparator />
          </>
        )}
        <ExportItems id={threadId} />
        <MenuItem icon="copy" onClick={() => void printAll()}>
          {t("list.print")}
        </MenuItem>
        <MenuSeparator />
        <MenuItem icon="code" onClick={() => openApps(threadId)}>
          {t("apps.open")}
        </MenuItem>
        {item && (
          <>
            <MenuSeparator />
            <DeleteItem item={item} />
          </>
        )}
      </Menu>
      <IconButton
        icon="panel"
        label={t("shell.inspector")}
        keys="Mod+."
        aria-pressed={isOpen}
        onClick={toggleInspector}
      />
    </>
  );
}

/** Tokens that providers counted, of all runs of the conversation. */
export const tokensOf = ({ models }: UsageView) =>
  models.reduce((sum, each) => sum + each.input_tokens + each.output_tokens, 0);

function Tokens({ threadId }: { threadId: string }) {
  const t = useT();
  const { run, load } = useConversation(threadId);
  // Counted once the conversation is there, and when each run ends.
  const ended = run?.status === "running" ? null : (run?.id ?? "");
  const { data } = useQuery({
    queryKey: ["usage", threadId, ended],
    queryFn: ({ signal }) => usage(threadId, signal),
    enabled: load === "ready" && ended !== null,
    placeholderData: keepPreviousData,
  });
  const tokens = data ? tokensOf(data) : 0;
  if (!tokens) return null;
  return (
    <span className={styles["tokens"]} title={t("shell.tokensExactly", { n: number(tokens) })}>
      {t("shell.tokens", { n: brief(tokens) })}
    </span>
  );
}
