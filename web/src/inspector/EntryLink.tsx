import { useT } from "../i18n";
import { navigate, toConversation } from "../route";
import styles from "./EntryLink.module.css";

/** Leads to a message in its conversation. */
export function EntryLink({ threadId, id, text }: { threadId: string; id: string; text?: string }) {
  const t = useT();
  return (
    <a
      className={styles["link"]}
      href={toConversation(threadId, id)}
      onClick={(event) => {
        event.preventDefault();
        navigate(toConversation(threadId, id));
      }}
    >
      {text ?? t("inspector.toEntry")}
    </a>
  );
}
