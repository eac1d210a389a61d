import { useRef } from "react";
import { Header } from "../layout/Header";
import { navigate, toConversation } from "../route";
import * as requests from "../stream/requests";
import { Composer, type ComposerHandle } from "./Composer";
import styles from "./NewConversation.module.css";

async function ask(question: string, key: string) {
  const { thread_id } = await requests.ask({ question }, null, key);
  navigate(toConversation(thread_id));
}

/** Where a conversation begins. */
export function NewConversation() {
  const composer = useRef<ComposerHandle>(null);
  return (
    <>
      <Header threadId={null} />
      <div className={styles["space"]} />
      <Composer ref={composer} threadId={null} onAsk={ask} />
    </>
  );
}
