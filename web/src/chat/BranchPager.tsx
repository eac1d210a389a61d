import { useT } from "../i18n";
import { number } from "../i18n/format";
import type { Siblings } from "../api/types";
import { Icon } from "../ui";
import styles from "./BranchPager.module.css";

interface BranchPagerProps {
  siblings: Siblings | null;
  label: string;
  /** The id of the entry that begins a branch. */
  onChoose: (id: string) => void;
}

/** ‹ 2/3 ›, where there is more than one branch. */
export function BranchPager({ siblings, label, onChoose }: BranchPagerProps) {
  const t = useT();
  const count = siblings?.ids.length ?? 0;
  const shown = siblings?.shown ?? null;
  // Where the run of a new branch has said nothing yet, none of these is shown.
  if (siblings === null || count === 0 || (count === 1 && shown !== null)) return null;
  const at = shown ?? count;
  const step = (by: number, name: "left" | "right", says: string) => {
    const id = siblings.ids[at + by];
    return (
      <button
        type="button"
        aria-label={says}
        disabled={id === undefined}
        onClick={() => id !== undefined && onChoose(id)}
      >
        <Icon name={name} size={14} />
      </button>
    );
  };
  return (
    <span role="group" aria-label={label} className={styles["pager"]}>
      {step(-1, "left", t("chat.before"))}
      <span>
        {number(at + 1)}/{number(shown === null ? count + 1 : count)}
      </span>
      {step(1, "right", t("chat.after"))}
    </span>
  );
}
