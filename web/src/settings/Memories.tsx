import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { memories } from "../api/memories";
import { useT } from "../i18n";
import { MemoryCard } from "../inspector/MemoryCard";
import { useMemoryActions } from "../inspector/useMemoryActions";
import { Button } from "../ui";
import styles from "./Memories.module.css";
import { Note, Part, Told } from "./parts";

/** What is remembered of the user, over all conversations. */
export function Memories() {
  const t = useT();
  const [words, setWords] = useState("");
  const asked = useQuery({
    queryKey: ["memory", "all", words.trim()],
    queryFn: ({ signal }) => memories(words.trim(), signal),
    placeholderData: keepPreviousData,
  });
  return (
    <Part title={t("settings.page.memories")} about={t("memory.about")}>
      <Add />
      <input
        className={styles["input"]}
        type="search"
        aria-label={t("memory.search")}
        placeholder={t("memory.search")}
        value={words}
        onChange={(event) => setWords(event.target.value)}
      />
      <Told answer={asked}>
        {(found) =>
          found.memories.length ? (
            <ul className={styles["list"]}>
              {found.memories.map((memory) => (
                <MemoryCard key={memory.id} memory={memory} />
              ))}
            </ul>
          ) : (
            <Note>{t(words.trim() ? "memory.noneFound" : "memory.none")}</Note>
          )
        }
      </Told>
    </Part>
  );
}

function Add() {
  const t = useT();
  const [text, setText] = useState("");
  const { remember } = useMemoryActions();
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) remember.mutate(text.trim(), { onSuccess: () => setText("") });
  };
  return (
    <form className={styles["form"]} onSubmit={add}>
      <input
        className={styles["input"]}
        aria-label={t("memory.new")}
        placeholder={t("memory.new")}
        maxLength={2000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button kind="primary" type="submit" disabled={!text.trim() || remember.isPending}>
        {t("memory.add")}
      </Button>
    </form>
  );
}
