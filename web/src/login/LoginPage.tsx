import { useQuery } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { auth } from "../api/account";
import { choose, current, useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { useDocumentTitle } from "../layout/documentTitle";
import { Button, Skeleton } from "../ui";
import { LinkForm } from "./LinkForm";
import styles from "./Login.module.css";
import { LoginForm } from "./LoginForm";
import { back } from "./own";

/** What follows `#` in the address: the token of a link that works once. No server ever sees it in an address. */
const useToken = () =>
  useSyncExternalStore(
    (listener) => {
      window.addEventListener("hashchange", listener);
      return () => window.removeEventListener("hashchange", listener);
    },
    () => location.hash.slice(1),
  );

/** Where users log in, and set their password by a link. */
export function LoginPage() {
  const t = useT();
  useDocumentTitle(t("login.title"));
  return (
    <main className={styles["page"]}>
      <div className={styles["card"]}>
        <p className={styles["brand"]}>
          <img src="/icon.svg" alt="" width={28} height={28} />
          Longthread
        </p>
        <Content />
      </div>
      <Language />
    </main>
  );
}

function Content() {
  const t = useT();
  const token = useToken();
  const { data, error, refetch } = useQuery({
    queryKey: ["auth"],
    queryFn: ({ signal }) => auth(signal),
    refetchOnWindowFocus: "always",
  });
  // Logged in, perhaps in another tab; or this server asks for no login.
  const isIn = data != null && data.user !== null && (token === "" || data.mode === "local");
  useEffect(() => {
    if (isIn) location.replace(back());
  }, [isIn]);
  if (!data && error !== null) {
    return (
      <div role="alert" className={styles["form"]}>
        <p>{sentence(error)}</p>
        <Button onClick={() => void refetch()}>{t("shell.retry")}</Button>
      </div>
    );
  }
  if (!data || isIn) return <Skeleton label={t("list.loading")} />;
  return token ? <LinkForm key={token} token={token} /> : <LoginForm auth={data} />;
}

/** The other language, by its own name. */
function Language() {
  useT();
  const other = current() === "en" ? "zh" : "en";
  return (
    <Button kind="quiet" lang={other} onClick={() => void choose(other)}>
      {{ en: "English", zh: "中文" }[other]}
    </Button>
  );
}
