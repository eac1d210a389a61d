import { type FormEvent, useState } from "react";
import { useT } from "../i18n";
import { Button, Icon } from "../ui";
import styles from "./TagsForm.module.css";
import { change } from "./actions";

interface TagsFormProps {
  item: { id: string; tags: readonly string[] };
  onDone: () => void;
}

/** A conversation's tags: each change is kept at once. */
export default function TagsForm({ item, onDone }: TagsFormProps) {
  const t = useT();
  const [text, setText] = useState("");
  const add = (event: FormEvent) => {
    event.preventDefault();
    const tag = text.trim();
    setText("");
    if (tag && !item.tags.includes(tag)) void change(item.id, { tags: [...item.tags, tag] });
  };
  return (
    <>
      <div className={styles["tags"]}>
        {item.tags.map((tag) => (
          <button
            key={tag}
            type="button"
            className={styles["tag"]}
            aria-label={t("list.untag", { tag })}
            onClick={() => void change(item.id, { tags: item.tags.filter((each) => each !== tag) })}
          >
            {tag} <Icon name="close" size={14} />
          </button>
        ))}
        {item.tags.length === 0 && <p className={styles["none"]}>{t("list.noTags")}</p>}
      </div>
      <form className={styles["form"]} onSubmit={add}>
        <input
          className={styles["input"]}
          aria-label={t("list.newTag")}
          placeholder={t("list.newTag")}
          maxLength={100}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit">{t("list.addTag")}</Button>
        <Button kind="primary" onClick={onDone}>
          {t("list.done")}
        </Button>
      </form>
    </>
  );
}
