import { useInfo } from "../api/server";
import { useIsDemo } from "../chat/model";
import { useT } from "../i18n";
import { openConnect } from "../palette/open";
import { Button, Icon, later } from "../ui";
import { pickFiles } from "../upload/pick";
import { agentName, useAbout } from "./Chips";
import styles from "./Welcome.module.css";
import type { Choice } from "./choice";

const QUESTIONS = ["shell.question1", "shell.question2", "shell.question3"] as const;

/** What may be asked of files, by their columns. */
const Suggestions = later(async () => {
  const [{ Suggestions }, { bringFiles }] = await Promise.all([
    import("../upload/Suggestions"),
    import("../upload/messages"),
  ]);
  await bringFiles();
  return Suggestions;
});

/** Questions that are asked with one click. */
export function Questions({ questions, onAsk }: { questions: readonly string[]; onAsk: (question: string) => void }) {
  return (
    <ul className={styles["questions"]}>
      {questions.map((question) => (
        <li key={question}>
          <button type="button" className={styles["question"]} onClick={() => onAsk(question)}>
            <span>{question}</span>
            <Icon name="right" size={16} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Where questions will stand. Three move nothing when they come, and fewer only what is below them. */
export function Awaited() {
  return (
    <ul className={styles["questions"]} aria-hidden="true">
      {QUESTIONS.map((id) => (
        <li key={id} className={styles["awaited"]} />
      ))}
    </ul>
  );
}

/** What may be asked of a source. */
function Suggested({ source, onAsk }: { source: string | null; onAsk: (question: string) => void }) {
  const t = useT();
  if (source === null) return null;
  if (source === "demo") return <Questions questions={QUESTIONS.map((id) => t(id))} onAsk={onAsk} />;
  return <Suggestions key={source} source={source} onAsk={onAsk} fallback={<Awaited />} />;
}

/** The first minute: one line, and questions that are asked with one click. */
export function Welcome({ choice, onAsk }: { choice: Choice; onAsk: (question: string) => void }) {
  const t = useT();
  const about = useAbout();
  const { data: info } = useInfo();
  const isDemo = useIsDemo(null);
  const { agent, agents, source } = choice;
  const isDefault = agent === agents[0] || agents.length === 0;
  if (!isDefault) {
    return (
      <section className={styles["welcome"]}>
        <h2 className={styles["line"]} dir="auto">
          {agentName(agent.name)}
        </h2>
        <p className={styles["about"]} dir="auto">
          {about(agent)}
        </p>
      </section>
    );
  }
  return (
    <section className={styles["welcome"]}>
      <h2 className={styles["line"]}>{t("shell.welcome")}</h2>
      <p className={styles["about"]}>{t("shell.welcomeText")}</p>
      {choice.settled ? <Suggested source={source} onAsk={onAsk} /> : <Awaited />}
      {choice.sources === "any" && (
        <button type="button" className={styles["own"]} onClick={pickFiles}>
          <Icon name="attach" size={16} />
          {t("upload.own")}
        </button>
      )}
      {isDemo && (
        <div className={styles["connect"]}>
          <p className={styles["note"]}>{t("shell.demoHint")}</p>
          {info?.sources === "any" && (
            <Button onClick={() => openConnect(null)}>
              <Icon name="model" size={16} />
              {t("shell.connect")}
            </Button>
          )}
        </div>
      )}
    </section>
  );
}
