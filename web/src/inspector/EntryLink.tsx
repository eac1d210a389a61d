import { useT } from "../i18n";
import { useWidth } from "../layout/width";
import { navigate, toConversation } from "../route";
import styles from "./EntryLink.module.css";
import { closeInspector } from "./selection";

/** Leads to a message in its conversation. */
export function EntryLink({ threadId, id, text }: { threadId: string; id: string; text?: string }) {
  const t = useT();
  const covers = useWidth() !== "wide";
  return (
    <a
      className={styles["link"]}
      href={toConversation(threadId, id)}
      onClick={(event) => {
        event.preventDefault();
        if (covers) closeInspector();
        navigate(toConversation(threadId, id));
      }}
    >
      {text ?? t("inspector.toEntry")}
    </a>
  );
}
