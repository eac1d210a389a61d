import { useT } from "../i18n";
import { locale } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, IconButton, Skeleton } from "../ui";
import styles from "./List.module.css";
import { Row } from "./Row";
import { remove } from "./actions";
import { type Group, grouped } from "./days";
import { type Asked, useChildren, useList, usePinned } from "./list";

const NAMED = {
  pinned: "list.pinned",
  today: "list.today",
  yesterday: "list.yesterday",
  week: "list.week",
  month: "list.month",
} as const;

function useGroupName() {
  const t = useT();
  return (group: Group) => {
    if (group in NAMED) return t(NAMED[group as keyof typeof NAMED]);
    const [year = 0, month = 1] = group.split("-").map(Number);
    return new Intl.DateTimeFormat(locale(), { month: "long", year: "numeric" }).format(new Date(year, month - 1));
  };
}

/** Pinned conversations, the others by day; what a search finds, by how well it fits. */
export function List({ asked, active }: { asked: Asked; active: string | null }) {
  const t = useT();
  const nameOf = useGroupName();
  const own = usePinned();
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useList(asked);
  if (isPending)
    return <div className={styles["list"]}>{!error && <Skeleton label={t("list.loading")} lines={6} />}</div>;
  if (error && !data) {
    return (
      <div role="alert" className={styles["note"]}>
        <p>{sentence(error)}</p>
        <Button onClick={() => void refetch()}>{t("shell.retry")}</Button>
      </div>
    );
  }
  const items = data.pages.flatMap((page) => page.conversations);
  const pins = asked.project === undefined ? own : items.filter(({ pinned_at }) => pinned_at !== null);
  const damaged = data.pages.flatMap((page) => page.damaged);
  const pinned = asked.archived ? [] : pins.filter(({ tags }) => !asked.tag || tags.includes(asked.tag));
  const others = grouped(asked.archived ? items : items.filter(({ pinned_at }) => pinned_at === null));
  const first = pinned.length ? [{ group: "pinned" as const, items: pinned }] : [];
  const groups = asked.q ? [{ group: null, items }] : [...first, ...others];
  return (
    <div className={styles["list"]}>
      {items.length + damaged.length + pinned.length === 0 && <p className={styles["note"]}>{t(emptyOf(asked))}</p>}
      {groups.map(({ group, items }) => (
        <section key={group ?? "found"} aria-label={group === null ? t("list.found") : nameOf(group)}>
          {group !== null && <h2 className={styles["day"]}>{nameOf(group)}</h2>}
          <ul>
            {items.map((item) => (
              <RowWithChildren key={item.id} item={item} active={active} />
            ))}
          </ul>
        </section>
      ))}
      <ul>
        {damaged.map((id) => (
          <Damaged key={id} id={id} />
        ))}
      </ul>
      {hasNextPage && (
        <Button kind="quiet" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {t("list.moreConversations")}
        </Button>
      )}
    </div>
  );
}

const emptyOf = ({ q, archived, tag }: Asked) =>
  q || tag ? "list.nothingFound" : archived ? "list.noArchived" : "list.none";

/** Below the one that is shown stand the conversations that agents have begun for it. */
function RowWithChildren({ item, active }: { item: Parameters<typeof Row>[0]["item"]; active: string | null }) {
  const t = useT();
  const isActive = item.id === active;
  const { data } = useChildren(item.id, isActive || item.waiting_below.length > 0);
  const children = data?.conversations ?? [];
  return (
    <>
      <Row item={item} active={isActive} />
      {children.length > 0 && (
        <li>
          <ul className={styles["below"]} aria-label={t("list.below")}>
            {children.map((child) => (
              <Row key={child.id} item={child} active={child.id === active} />
            ))}
          </ul>
        </li>
      )}
    </>
  );
}

/** One that cannot be read: all there is to do about it here is to delete it. */
function Damaged({ id }: { id: string }) {
  const t = useT();
  return (
    <li className={styles["damaged"]} data-id={id}>
      <span className={styles["id"]} title={id}>
        {id}
        <small>{t("list.damaged")}</small>
      </span>
      <IconButton
        icon="trash"
        label={t("list.deleteDamaged", { label: id })}
        onClick={() => void remove({ id, label: id }, "keep")}
      />
    </li>
  );
}
