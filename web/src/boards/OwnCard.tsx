import { useId, useMemo, useState } from "react";
import type { BoardView, CardView } from "../api/types";
import * as api from "../api/boards";
import { useT } from "../i18n";
import { sentence, told } from "../i18n/sentence";
import { saveChart } from "../results/saveChart";
import { useWords } from "../results/words";
import { navigate, toConversation } from "../route";
import { useStore } from "../store";
import { Dialog, IconButton, Menu, MenuItem, MenuLink, MenuSeparator, classes, say } from "../ui";
import styles from "./Boards.module.css";
import { CardBody, CardNote, type Shown, useShown } from "./CardBody";
import { CardForm } from "./CardForm";
import { Confirm } from "./Confirm";
import { valuesText } from "./Values";
import { type Look, jsonOf, lookOf } from "./look";
import type { BoardActions } from "./useBoard";

interface OwnCardProps {
  board: BoardView;
  card: CardView;
  actions: BoardActions;
  /** Null: it is the first, or the last. */
  onEarlier: (() => void) | null;
  onLater: (() => void) | null;
}

/** A card of one's own board. */
export function OwnCard(props: OwnCardProps) {
  const t = useT();
  const { board, card, actions } = props;
  const id = useId();
  const [open, setOpen] = useState<"edit" | "remove" | null>(null);
  const look = useMemo(() => lookOf(card.look), [card.look]);
  const shown = useShown(card, look);
  const close = () => setOpen(null);
  const others = card.parameters.flatMap((each) => {
    const value = card.values_read[each.name] ?? each.value;
    return value === each.value ? [] : [{ ...each, value }];
  });
  return (
    <article className={classes(styles["card"], look.wide && styles["wide"])} aria-labelledby={id}>
      <header className={styles["cardHead"]}>
        <h2 id={id} className={styles["cardTitle"]} dir="auto" title={card.question}>
          {card.title}
        </h2>
        <CardActions
          {...props}
          look={look}
          shown={shown}
          onEdit={() => setOpen("edit")}
          onRemove={() => setOpen("remove")}
        />
      </header>
      <div className={styles["body"]}>
        <CardBody card={card} look={look} shown={shown} />
      </div>
      {card.error && (
        <p role="alert" className={styles["wrong"]}>
          {t("boards.card.wrong", { reason: told(card.error as unknown as Parameters<typeof told>[0]) })}
        </p>
      )}
      <div className={styles["cardFoot"]}>
        {others.length > 0 && (
          <p className={styles["valuesRead"]}>{t("boards.card.otherValues", { values: valuesText(others) })}</p>
        )}
        <CardNote card={card} />
      </div>
      <Dialog open={open === "edit"} onClose={close} title={t("boards.edit.title")} place="broad">
        <CardForm board={board} card={card} actions={actions} onDone={close} />
      </Dialog>
      <Dialog open={open === "remove"} onClose={close} title={t("boards.card.remove")}>
        <Confirm
          text={t("boards.card.removeAsk", { title: card.title })}
          act={t("boards.card.remove")}
          onAct={() => void actions.removeCard(card.id)}
          onDone={close}
        />
      </Dialog>
    </article>
  );
}

interface ActionsProps extends OwnCardProps {
  look: Look;
  shown: Shown;
  onEdit: () => void;
  onRemove: () => void;
}

function CardActions({ board, card, actions, look, shown, onEarlier, onLater, onEdit, onRemove }: ActionsProps) {
  const t = useT();
  const busy = useStore(actions.busy);
  const { thread_id: thread, message } = card;
  const showAs = (next: Partial<Look>) => void actions.changeCard(card.id, { look: jsonOf({ ...look, ...next }) });
  const isChart = look.view === "chart" && shown.spec !== null;
  const picture = usePicture(card, isChart, shown);
  return (
    <Menu trigger={<IconButton icon="more" label={t("boards.card.more", { title: card.title })} />}>
      <MenuItem icon="again" onClick={() => busy || void actions.refresh([card.id])}>
        {t("boards.card.refresh")}
      </MenuItem>
      <MenuItem icon="edit" onClick={onEdit}>
        {t("boards.card.edit")}
      </MenuItem>
      {thread !== null && (
        <MenuItem icon="right" onClick={() => navigate(toConversation(thread, message ?? undefined))}>
          {t("boards.card.conversation")}
        </MenuItem>
      )}
      <MenuSeparator />
      {shown.spec && (
        <MenuItem icon="panel" onClick={() => showAs({ view: isChart ? "table" : "chart" })}>
          {t(isChart ? "boards.card.table" : "boards.card.chart")}
        </MenuItem>
      )}
      <MenuItem icon="board" onClick={() => showAs({ wide: !look.wide })}>
        {t(look.wide ? "boards.card.narrow" : "boards.card.wide")}
      </MenuItem>
      {onEarlier && (
        <MenuItem icon="up" onClick={onEarlier}>
          {t("boards.card.earlier")}
        </MenuItem>
      )}
      {onLater && (
        <MenuItem icon="down" onClick={onLater}>
          {t("boards.card.later")}
        </MenuItem>
      )}
      <MenuSeparator />
      {(["xlsx", "csv"] as const).map((format) => (
        <MenuLink key={format} icon="download" href={api.filePath(board.id, card.id, format)} download>
          {t("boards.card.file", { format: { xlsx: "Excel", csv: "CSV" }[format] })}
        </MenuLink>
      ))}
      <MenuItem icon="download" onClick={() => void picture()}>
        {t("boards.card.file", { format: "PNG" })}
      </MenuItem>
      <MenuSeparator />
      <MenuItem icon="trash" danger onClick={onRemove}>
        {t("boards.card.remove")}
      </MenuItem>
    </Menu>
  );
}

/** Saves what a card shows as a picture. */
function usePicture(card: CardView, isChart: boolean, { result, spec }: Shown) {
  const words = useWords();
  return async () => {
    try {
      if (isChart && spec) return await saveChart(spec, result.formats ?? {}, card.title, words, "png");
      const { saveTable } = await import("./picture");
      await saveTable(card.title, result, words);
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
    }
  };
}
