import { useRef } from "react";
import { Chips } from "../layout/Chips";
import { Header } from "../layout/Header";
import { Welcome } from "../layout/Welcome";
import { useChoice } from "../layout/choice";
import { navigate, toConversation } from "../route";
import * as requests from "../stream/requests";
import { Composer, type ComposerHandle } from "./Composer";

/** Where a conversation begins. */
export function NewConversation() {
  const composer = useRef<ComposerHandle>(null);
  const choice = useChoice();
  const ask = async (question: string, key: string) => {
    const { thread_id } = await requests.ask({ question, ...choice.fields }, null, key);
    navigate(toConversation(thread_id));
  };
  return (
    <>
      <Header threadId={null} />
      <Welcome choice={choice} onAsk={(question) => composer.current?.send(question)} />
      <Composer ref={composer} threadId={null} onAsk={ask}>
        <Chips choice={choice} />
      </Composer>
    </>
  );
}
