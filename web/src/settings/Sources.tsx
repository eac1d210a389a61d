import { useInfo } from "../api/server";
import { useT } from "../i18n";
import { chooseSource } from "../layout/choice";
import { navigate, toNew } from "../route";
import { Button } from "../ui";
import styles from "./Cards.module.css";
import { Note, Part, Told } from "./parts";

function begin(source: string) {
  chooseSource(source);
  navigate(toNew);
}

/** What can be asked. */
export function Sources() {
  const t = useT();
  return (
    <Part title={t("settings.sources")} about={t("settings.sourcesAbout")}>
      <Told answer={useInfo()}>
        {({ source, sources }) => (
          <>
            <ul className={styles["cards"]}>
              {(sources === "any" ? [...new Set([source, "demo"])] : sources).map(
                (each) =>
                  each !== null && (
                    <li key={each} className={styles["card"]}>
                      <div className={styles["text"]}>
                        <h3 className={styles["name"]}>{each}</h3>
                        {each === "demo" && <p>{t("settings.sampleAbout")}</p>}
                        {each === source && <p className={styles["fact"]}>{t("settings.sourceOwn")}</p>}
                      </div>
                      <Button onClick={() => begin(each)}>{t("settings.ask")}</Button>
                    </li>
                  ),
              )}
            </ul>
            <Note>{t(sources === "any" ? "settings.sourcesAny" : "settings.sourcesListed")}</Note>
          </>
        )}
      </Told>
    </Part>
  );
}
