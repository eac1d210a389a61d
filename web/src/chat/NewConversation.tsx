import { useEffect, useRef } from "react";
import { Chips } from "../layout/Chips";
import { Header } from "../layout/Header";
import { ModelChip } from "../layout/ModelChip";
import { Welcome } from "../layout/Welcome";
import { keepSource, useChoice } from "../layout/choice";
import { navigate, toConversation } from "../route";
import { conversation } from "../stream/opened";
import * as requests from "../stream/requests";
import { Composer, type ComposerHandle } from "./Composer";
import { chooseModel, modelOf, withModel } from "./model";

/** Where a conversation begins. */
export function NewConversation() {
  const composer = useRef<ComposerHandle>(null);
  const choice = useChoice();
  const here = useRef(true);
  useEffect(() => {
    here.current = true;
    return () => void (here.current = false);
  }, []);
  const ask = async (question: string, key: string) => {
    const answer = await withModel(null, (model) => requests.ask({ question, ...choice.fields, ...model }, null, key));
    chooseModel(answer.thread_id, modelOf(null));
    keepSource(choice.fields.source);
    if ("run_id" in answer) conversation(answer.thread_id).begins(answer.run_id);
    // What was opened meanwhile stays.
    if (here.current) navigate(toConversation(answer.thread_id));
  };
  return (
    <>
      <Header threadId={null} />
      <Welcome choice={choice} onAsk={(question) => composer.current?.send(question)} />
      <Composer ref={composer} threadId={null} onAsk={ask} goesWith={`${choice.agent.id} ${choice.source ?? ""}`} attaches={choice.sources !== null}>
        <Chips choice={choice} />
        <ModelChip threadId={null} agent={choice.agent.name} />
      </Composer>
    </>
  );
}
