import { useQuery } from "@tanstack/react-query";
import { tags } from "../api/feedback";
import { useT } from "../i18n";
import styles from "./TagBar.module.css";

interface TagBarProps {
  /** Empty: none. */
  chosen: string;
  onChoose: (tag: string) => void;
}

/** All tags; one of them filters the list. */
export default function TagBar({ chosen, onChoose }: TagBarProps) {
  const t = useT();
  const { data } = useQuery({ queryKey: ["tags"], queryFn: ({ signal }) => tags(signal) });
  const names = data?.tags.map(({ tag }) => tag) ?? [];
  // What filters can be taken away, also when nothing has the tag any more.
  const shown = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  if (!shown.length) return null;
  return (
    <div role="group" aria-label={t("list.tags")} className={styles["tags"]}>
      {shown.map((tag) => (
        <button
          key={tag}
          type="button"
          className={styles["tag"]}
          aria-pressed={tag === chosen}
          title={tag}
          onClick={() => onChoose(tag === chosen ? "" : tag)}
        >
          <bdi>{tag}</bdi>
        </button>
      ))}
    </div>
  );
}
