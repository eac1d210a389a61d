import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import * as api from "../api/boards";
import { Link } from "../chat/Link";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { useDocumentTitle } from "../layout/documentTitle";
import { openDrawer } from "../layout/drawer";
import { useWidth } from "../layout/width";
import { navigate, toBoard } from "../route";
import { Told } from "../settings/parts";
import { Button, IconButton } from "../ui";
import styles from "./Boards.module.css";

/** All boards, and a new one. */
export function BoardList() {
  const t = useT();
  const answer = useQuery({ queryKey: ["boards"], queryFn: ({ signal }) => api.boards(signal) });
  useDocumentTitle(t("shell.boards"));
  return (
    <div className={styles["scroll"]}>
      <div className={styles["list"]}>
        <div className={styles["head"]}>
          {useWidth() === "narrow" && <IconButton icon="menu" label={t("shell.openList")} onClick={openDrawer} />}
          <h1 className={styles["title"]}>{t("shell.boards")}</h1>
        </div>
        <Told answer={answer}>
          {({ boards }) => (
            <>
              {boards.length === 0 && (
                <div className={styles["none"]}>
                  <h2 className={styles["said"]}>{t("boards.none")}</h2>
                  <p>{t("boards.noneHelp")}</p>
                </div>
              )}
              <ul className={styles["boards"]}>
                {boards.map((each) => (
                  <li key={each.id}>
                    <Link to={toBoard(each.id)} className={styles["board"]}>
                      <span className={styles["name"]} dir="auto">
                        {each.title}
                      </span>
                      <span className={styles["meta"]}>
                        {[
                          t("boards.cards", { n: each.cards }),
                          each.refresh_every && t(`boards.every.${each.refresh_every}`),
                        ]
                          .filter(Boolean)
                          .join(" · ")}
                      </span>
                    </Link>
                  </li>
                ))}
              </ul>
            </>
          )}
        </Told>
        <NewBoard />
      </div>
    </div>
  );
}

function NewBoard() {
  const t = useT();
  const client = useQueryClient();
  const [title, setTitle] = useState("");
  const made = useMutation({
    mutationFn: () => api.create(title.trim()),
    onSuccess: ({ id }) => {
      void client.invalidateQueries({ queryKey: ["boards"] });
      navigate(toBoard(id));
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (title.trim()) made.mutate();
  };
  return (
    <form className={styles["line"]} onSubmit={submit}>
      <input
        className={styles["input"]}
        aria-label={t("boards.name")}
        placeholder={t("boards.new")}
        value={title}
        maxLength={200}
        onChange={(event) => setTitle(event.target.value)}
      />
      <Button type="submit" disabled={!title.trim() || made.isPending}>
        {t("boards.create")}
      </Button>
      {made.error && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(made.error)}
        </p>
      )}
    </form>
  );
}
