import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queryClient } from "../api/cache";
import { deleteConnection, models, nameOf, providerName } from "../api/models";
import type { ModelList, ModelProvider } from "../api/types";
import { type MessageId, useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { openConnect } from "../palette/open";
import { Button, say } from "../ui";
import styles from "./Cards.module.css";
import { GrantsButton } from "./GrantsPart";
import { Note, Part, Told } from "./parts";

/** The models that can be asked, and what is connected. */
export function Models() {
  const answer = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => models(signal), staleTime: 30_000 });
  return <Told answer={answer}>{(found) => <Found list={found} />}</Told>;
}

function Found({ list }: { list: ModelList }) {
  const t = useT();
  return (
    <>
      {list.keys_allowed ? <Connected list={list} /> : <Note>{t("settings.keysElsewhere")}</Note>}
      <Part title={t("settings.models")} about={t("settings.modelsAbout", { model: list.default })}>
        <ul className={styles["cards"]}>
          {list.models.map(({ name, origin, provider, protocol }) => (
            <li key={name} className={styles["card"]}>
              <div className={styles["text"]}>
                <h3 className={styles["name"]}>{name}</h3>
                <p className={styles["fact"]}>
                  {t(`settings.model.${origin}`, { provider: providerName(list, provider) })}
                </p>
                {protocol && <p className={styles["fact"]}>{t(`settings.protocol.${protocol}`)}</p>}
              </div>
              <GrantsButton kind="model" item={name} />
            </li>
          ))}
        </ul>
      </Part>
    </>
  );
}

function Connected({ list: { providers } }: { list: ModelList }) {
  const t = useT();
  const connected = providers.filter((each) => each.connected);
  return (
    <Part title={t("settings.keys")} about={connected.length ? t("settings.keysAbout") : t("settings.unconnected")}>
      <ul className={styles["cards"]}>
        {connected.map((each) => (
          <Connection key={each.provider} of={each} />
        ))}
      </ul>
      <div>
        <Button kind="primary" onClick={() => openConnect(null)}>
          {t("shell.connect")}
        </Button>
      </div>
    </Part>
  );
}

const STATE: Record<"stored" | "environment", MessageId> = {
  stored: "settings.key.stored",
  environment: "settings.key.environment",
};

function Connection({ of }: { of: ModelProvider }) {
  const t = useT();
  const { provider, key, url, set_at, problem } = of;
  const name = nameOf(of);
  const [busy, setBusy] = useState(false);
  const disconnect = async () => {
    setBusy(true);
    try {
      await deleteConnection(provider);
      await queryClient.invalidateQueries({ queryKey: ["models"] });
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
    } finally {
      setBusy(false);
    }
  };
  return (
    <li className={styles["card"]}>
      <div className={styles["text"]}>
        <h3 className={styles["name"]}>{name}</h3>
        {url && <p className={styles["fact"]}>{url}</p>}
        <p className={problem ? styles["wrong"] : styles["fact"]}>
          {t(problem ? `settings.key.${problem}` : key ? STATE[key] : "settings.key.none")}
        </p>
      </div>
      <div className={styles["actions"]}>
        {/* The server of the settings has no name, and is changed there. */}
        {provider !== "own" && (
          <Button aria-label={t("settings.changeOf", { provider: name })} onClick={() => openConnect(null, provider)}>
            {t("settings.change")}
          </Button>
        )}
        {set_at !== null && (
          <Button
            kind="quiet"
            disabled={busy}
            aria-label={t("settings.disconnectOf", { provider: name })}
            onClick={() => void disconnect()}
          >
            {t("settings.disconnect")}
          </Button>
        )}
      </div>
    </li>
  );
}
