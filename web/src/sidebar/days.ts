// The list by day: today, yesterday, the last seven and thirty days, then months.

export type Group = "pinned" | "today" | "yesterday" | "week" | "month" | `${number}-${number}`;

const DAY_MS = 86_400_000;

/** Midnight of a day, as if all days had 24 hours: only differences of days count. */
const dayOf = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());

export function groupOf(iso: string, now: Date): Group {
  const then = new Date(iso);
  const days = Math.round((dayOf(now) - dayOf(then)) / DAY_MS);
  if (days <= 0) return "today";
  if (days === 1) return "yesterday";
  if (days < 7) return "week";
  if (days < 30) return "month";
  return `${then.getFullYear()}-${then.getMonth() + 1}`;
}

/** Items that follow each other in one group, in their order. */
export function grouped<Item extends { last_active_at: string }>(
  items: readonly Item[],
  now = new Date(),
): { group: Group; items: Item[] }[] {
  const made: { group: Group; items: Item[] }[] = [];
  for (const item of items) {
    const group = groupOf(item.last_active_at, now);
    const last = made.at(-1);
    if (last?.group === group) last.items.push(item);
    else made.push({ group, items: [item] });
  }
  return made;
}
