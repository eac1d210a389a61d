import { useAgents } from "../api/server";
import { useT } from "../i18n";
import { agentName, useAbout } from "../layout/Chips";
import { chooseAgent } from "../layout/choice";
import { navigate, toNew } from "../route";
import { Button } from "../ui";
import styles from "./Cards.module.css";
import { Part, Told } from "./parts";

/** Opens a new conversation with an agent. */
export function begin(id: string) {
  chooseAgent(id);
  navigate(toNew);
}

/** The agents that can be asked. */
export function Agents() {
  const t = useT();
  const about = useAbout();
  return (
    <Part title={t("settings.page.agents")} about={t("settings.agentsAbout")}>
      <Told answer={useAgents()}>
        {(agents) => (
          <ul className={styles["cards"]}>
            {agents.map((agent) => (
              <li key={agent.id} className={styles["card"]}>
                <div className={styles["text"]}>
                  <h3 className={styles["name"]} dir="auto">
                    {agentName(agent.name)}
                  </h3>
                  <p dir="auto">{about(agent)}</p>
                  {agent.source && <p className={styles["fact"]}>{`${t("shell.source")}: ${agent.source}`}</p>}
                </div>
                <Button onClick={() => begin(agent.id)}>{t("settings.ask")}</Button>
              </li>
            ))}
          </ul>
        )}
      </Told>
    </Part>
  );
}
