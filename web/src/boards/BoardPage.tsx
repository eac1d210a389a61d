import { type FormEvent, useState } from "react";
import * as api from "../api/boards";
import { useSharing } from "../api/server";
import type { BoardView } from "../api/types";
import { useT } from "../i18n";
import { useDocumentTitle } from "../layout/documentTitle";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { navigate, toBoards } from "../route";
import { Told } from "../settings/parts";
import { Sharing } from "../share/ShareDialog";
import { useStore } from "../store";
import { Button, Dialog, Icon, IconButton, Menu, MenuChoices, MenuItem, MenuSeparator } from "../ui";
import styles from "./Boards.module.css";
import { Confirm } from "./Confirm";
import { OwnCard } from "./OwnCard";
import { Values } from "./Values";
import { type BoardActions, useBoardActions, useBoardQuery } from "./useBoard";

type Open = "share" | "delete" | "rename" | null;
const HAND = "hand";

/** A board: its values, and its cards on a grid. */
export function BoardPage({ id }: { id: string }) {
  const answer = useBoardQuery(id);
  const actions = useBoardActions(id);
  return (
    <Told answer={answer}>
      {(board) => (
        <>
          <Head board={board} actions={actions} />
          <div className={styles["scroll"]}>
            <Values board={board} actions={actions} />
            {board.cards.length === 0 ? <Empty /> : <Grid board={board} actions={actions} />}
          </div>
        </>
      )}
    </Told>
  );
}

function Empty() {
  const t = useT();
  return (
    <div className={styles["none"]}>
      <h2 className={styles["said"]}>{t("boards.empty")}</h2>
      <p>{t("boards.noneHelp")}</p>
    </div>
  );
}

function Grid({ board, actions }: { board: BoardView; actions: BoardActions }) {
  const ids = board.cards.map((card) => card.id);
  const move = (at: number, to: number) => {
    const order = ids.toSpliced(at, 1);
    order.splice(to, 0, ids[at] ?? "");
    void actions.change({ order });
  };
  return (
    <div className={styles["grid"]}>
      {board.cards.map((card, at) => (
        <OwnCard
          key={card.id}
          board={board}
          card={card}
          actions={actions}
          onEarlier={at > 0 ? () => move(at, at - 1) : null}
          onLater={at < ids.length - 1 ? () => move(at, at + 1) : null}
        />
      ))}
    </div>
  );
}

function Head({ board, actions }: { board: BoardView; actions: BoardActions }) {
  const t = useT();
  const [open, setOpen] = useState<Open>(null);
  const busy = useStore(actions.busy);
  const isNarrow = useWidth() === "narrow";
  const sharing = useSharing();
  useDocumentTitle(board.title);
  const close = () => setOpen(null);
  const remove = async () => {
    if (await actions.remove()) navigate(toBoards, { replace: true });
  };
  const hasCards = board.cards.length > 0;
  return (
    <header className={styles["bar"]}>
      {isNarrow && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
      <IconButton icon="left" label={t("boards.back")} onClick={() => navigate(toBoards)} />
      {open === "rename" ? <Rename board={board} actions={actions} onDone={close} /> : <Title board={board} />}
      <span className={styles["space"]} />
      {hasCards && <Refresh board={board} actions={actions} isNarrow={isNarrow} />}
      <span className="unseen" role="status">
        {busy && t("boards.refreshing", { n: busy.done + 1, all: busy.all })}
      </span>
      {hasCards && sharing !== "off" && (
        <IconButton icon="share" label={t("boards.share")} onClick={() => setOpen("share")} />
      )}
      <Menu trigger={<IconButton icon="more" label={t("boards.more")} />}>
        <MenuItem icon="edit" onClick={() => setOpen("rename")}>
          {t("boards.rename")}
        </MenuItem>
        <MenuSeparator />
        <MenuChoices
          value={board.refresh_every ?? HAND}
          options={([HAND, "hour", "day", "week"] as const).map((value) => ({
            value,
            label: t(`boards.every.${value}`),
            ...(value === HAND ? { note: t("boards.every") } : {}),
          }))}
          onChoose={(every) => void actions.change({ refresh_every: every === HAND ? null : every })}
        />
        <MenuSeparator />
        <MenuItem icon="trash" danger onClick={() => setOpen("delete")}>
          {t("boards.delete")}
        </MenuItem>
      </Menu>
      <Dialog open={open === "share"} onClose={close} title={t("boards.share")}>
        <Sharing
          path={api.pathOf(board.id)}
          about={t(sharing === "users" ? "boards.share.aboutUsers" : "boards.share.about")}
          note={t("boards.share.without")}
          heading={t("boards.share.links")}
          onDone={close}
        />
      </Dialog>
      <Dialog open={open === "delete"} onClose={close} title={t("boards.delete")}>
        <Confirm
          text={t("boards.deleteAsk", { title: board.title, n: board.cards.length })}
          act={t("boards.delete")}
          onAct={() => void remove()}
          onDone={close}
        />
      </Dialog>
    </header>
  );
}

function Refresh({ board, actions, isNarrow }: { board: BoardView; actions: BoardActions; isNarrow: boolean }) {
  const t = useT();
  const busy = useStore(actions.busy);
  const act = () => void actions.refresh(board.cards.map((card) => card.id));
  if (isNarrow) return <IconButton icon="again" label={t("boards.refresh")} disabled={busy !== null} onClick={act} />;
  return (
    <Button className={styles["refresh"]} disabled={busy !== null} onClick={act}>
      <Icon name="again" size={16} />
      {busy ? t("boards.refreshing", { n: busy.done + 1, all: busy.all }) : t("boards.refresh")}
    </Button>
  );
}

function Title({ board }: { board: BoardView }) {
  const t = useT();
  return (
    <>
      <h1 className={styles["heading"]} dir="auto" title={board.title}>
        {board.title}
      </h1>
      {board.refresh_every && <span className={styles["chip"]}>{t(`boards.every.${board.refresh_every}`)}</span>}
    </>
  );
}

function Rename({ board, actions, onDone }: { board: BoardView; actions: BoardActions; onDone: () => void }) {
  const t = useT();
  const [title, setTitle] = useState(board.title);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (title.trim() && title !== board.title) void actions.change({ title: title.trim() });
    onDone();
  };
  return (
    <form className={styles["line"]} onSubmit={submit}>
      <input
        className={styles["input"]}
        aria-label={t("boards.name")}
        value={title}
        maxLength={200}
        autoFocus
        onFocus={(event) => event.currentTarget.select()}
        onChange={(event) => setTitle(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
      />
      <Button type="submit">{t("boards.save")}</Button>
    </form>
  );
}
