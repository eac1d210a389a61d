import { Suspense, lazy, useEffect, useRef } from "react";
import { Chips } from "../layout/Chips";
import { Header } from "../layout/Header";
import { ModelChip } from "../layout/ModelChip";
import { Welcome } from "../layout/Welcome";
import { type Choice, keepSource, useChoice } from "../layout/choice";
import { navigate, toConversation } from "../route";
import { conversation } from "../stream/opened";
import * as requests from "../stream/requests";
import { Composer, type ComposerHandle } from "./Composer";
import { chooseModel, modelOf, withModel } from "./model";

const ProjectChip = lazy(() => import("../projects/ProjectChip"));

/** Where a conversation begins; `project` is the one in which it is then. */
export function NewConversation({ project }: { project: string | undefined }) {
  const composer = useRef<ComposerHandle>(null);
  const choice = useChoice();
  const here = useRef(true);
  useEffect(() => {
    here.current = true;
    return () => void (here.current = false);
  }, []);
  const settled = useSettled(choice);
  const ask = async (question: string, key: string) => {
    const { fields } = await settled();
    const place = project === undefined ? {} : { project };
    const answer = await withModel(null, (model) =>
      requests.ask({ question, ...fields, ...model, ...place }, null, key),
    );
    chooseModel(answer.thread_id, modelOf(null));
    keepSource(fields.source);
    if ("run_id" in answer) conversation(answer.thread_id).begins(answer.run_id);
    // What was opened meanwhile stays.
    if (here.current) navigate(toConversation(answer.thread_id));
  };
  return (
    <>
      <Header threadId={null} />
      <Welcome choice={choice} onAsk={(question) => composer.current?.send(question)} />
      <Composer
        ref={composer}
        threadId={null}
        onAsk={ask}
        goesWith={`${choice.agent.id} ${choice.source ?? ""} ${project ?? ""}`}
        attaches={choice.sources !== null}
      >
        {project !== undefined && (
          <Suspense>
            <ProjectChip id={project} />
          </Suspense>
        )}
        <Chips choice={choice} />
        <ModelChip threadId={null} agent={choice.agent.name} />
      </Composer>
    </>
  );
}

/** Waits until it is known what is asked: a question that is sent before would go to another source. */
function useSettled(choice: Choice): () => Promise<Choice> {
  const latest = useRef(choice);
  const waiting = useRef<(() => void)[]>([]);
  useEffect(() => {
    latest.current = choice;
    if (choice.settled) for (const go of waiting.current.splice(0)) go();
  }, [choice]);
  return async () => {
    if (!latest.current.settled) await new Promise<void>((go) => waiting.current.push(go));
    return latest.current;
  };
}
