import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { queryClient } from "../api/cache";
import { type ModelList, type ModelProvider, deleteKey, models, storeKey } from "../api/sources";
import { type MessageId, useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, say } from "../ui";
import styles from "./Cards.module.css";
import { Note, Part, Told } from "./parts";
import { providerName } from "./providers";

/** The models that can be asked, and the keys of their providers. */
export function Models() {
  const answer = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => models(signal), staleTime: 30_000 });
  return <Told answer={answer}>{(found) => <Found {...found} />}</Told>;
}

function Found({ default: first, models, providers, keys_allowed }: ModelList) {
  const t = useT();
  return (
    <>
      <Part title={t("settings.models")} about={t("settings.modelsAbout", { model: first })}>
        <ul className={styles["cards"]}>
          {models.map(({ name, origin, provider, protocol }) => (
            <li key={name} className={styles["card"]}>
              <div className={styles["text"]}>
                <h3 className={styles["name"]}>{name}</h3>
                <p className={styles["fact"]}>{t(`settings.model.${origin}`, { provider: providerName(provider) })}</p>
                {protocol && <p className={styles["fact"]}>{t(`settings.protocol.${protocol}`)}</p>}
              </div>
            </li>
          ))}
        </ul>
      </Part>
      {keys_allowed ? (
        <Part title={t("settings.keys")} about={t("settings.keysAbout")}>
          <ul className={styles["cards"]}>
            {providers.map((each) => (
              <Provider key={each.provider} of={each} />
            ))}
          </ul>
        </Part>
      ) : (
        <Note>{t("settings.keysElsewhere")}</Note>
      )}
    </>
  );
}

const STATE: Record<"stored" | "environment", MessageId> = { stored: "settings.key.stored", environment: "settings.key.environment" };

function Provider({ of: { provider, key, problem } }: { of: ModelProvider }) {
  const t = useT();
  const name = providerName(provider);
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const done = async (request: Promise<void>) => {
    setBusy(true);
    try {
      await request;
      setText("");
      await queryClient.invalidateQueries({ queryKey: ["models"] });
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
    } finally {
      setBusy(false);
    }
  };
  const store = (event: FormEvent) => {
    event.preventDefault();
    void done(storeKey(provider, text.trim()));
  };
  return (
    <li className={styles["card"]}>
      <div className={styles["text"]}>
        <h3 className={styles["name"]}>{name}</h3>
        <p className={problem ? styles["wrong"] : styles["fact"]}>{t(problem ? `settings.key.${problem}` : key ? STATE[key] : "settings.key.none")}</p>
      </div>
      <form className={styles["form"]} onSubmit={store}>
        <input
          type="password"
          className={styles["input"]}
          autoComplete="off"
          aria-label={t("settings.keyOf", { provider: name })}
          placeholder={t("settings.key")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" disabled={busy || !text.trim()}>
          {t("settings.keyStore")}
        </Button>
        {key === "stored" && (
          <Button kind="quiet" disabled={busy} onClick={() => void done(deleteKey(provider))}>
            {t("settings.keyDelete")}
          </Button>
        )}
      </form>
    </li>
  );
}
