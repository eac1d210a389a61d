import { type FormEvent, useState } from "react";
import { useSources } from "../api/server";
import { addSource, removeSource } from "../api/sources";
import type { SourceView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { chooseSource } from "../layout/choice";
import { filesOf } from "../layout/files";
import { navigate, toNew, toTerms } from "../route";
import { follow } from "../sidebar/Row";
import { Button, Dialog, IconButton, say } from "../ui";
import styles from "./Cards.module.css";
import { GrantsButton } from "./GrantsPart";
import { Upload } from "./Upload";
import { Note, Part, Told } from "./parts";
import { refreshSources } from "./refresh";

function begin(source: string) {
  chooseSource(source);
  navigate(toNew);
}

/** What can be asked, and how more becomes so. */
export function Sources() {
  const t = useT();
  const answer = useSources();
  return (
    <Told answer={answer}>
      {({ sources, default: first, changeable }) => (
        <>
          <Part title={t("settings.sources")} about={t("settings.sourcesAbout")}>
            <ul className={styles["cards"]}>
              {sources.map((each) => (
                <Source
                  key={each.name}
                  source={each}
                  isFirst={each.name === first}
                  changeable={changeable && each.origin === "catalog"}
                  teaches={changeable}
                />
              ))}
            </ul>
          </Part>
          {changeable ? (
            <>
              <Upload />
              <Address />
            </>
          ) : (
            <Note>{t("settings.sourcesListed")}</Note>
          )}
        </>
      )}
    </Told>
  );
}

interface SourceProps {
  source: SourceView;
  isFirst: boolean;
  changeable: boolean;
  /** Whether it can be taught. */
  teaches: boolean;
}

function Source({ source, isFirst, changeable, teaches }: SourceProps) {
  const t = useT();
  const [removing, setRemoving] = useState(false);
  const remove = async () => {
    setRemoving(false);
    try {
      await removeSource(source.name);
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
    }
    await refreshSources();
  };
  const about = source.origin === "demo" ? t("settings.sampleAbout") : source.description;
  return (
    <li className={styles["card"]}>
      <div className={styles["text"]}>
        <h3 className={styles["name"]}>{source.name}</h3>
        {about && <p dir="auto">{about}</p>}
        {(filesOf(source) || source.address) !== source.name && (
          <p className={styles["fact"]}>{filesOf(source) || source.address}</p>
        )}
        {isFirst && <p className={styles["fact"]}>{t("settings.sourceOwn")}</p>}
        {teaches && (
          <a
            className={styles["fact"]}
            href={toTerms(source.name)}
            onClick={(event) => follow(event, toTerms(source.name))}
          >
            {t("settings.termsOf")}
          </a>
        )}
      </div>
      <GrantsButton kind="source" item={source.name} />
      <Button onClick={() => begin(source.name)}>{t("settings.ask")}</Button>
      {changeable && (
        <IconButton
          icon="trash"
          label={t("settings.removeSource", { name: source.name })}
          onClick={() => setRemoving(true)}
        />
      )}
      <Dialog
        open={removing}
        onClose={() => setRemoving(false)}
        title={t("settings.removeSource", { name: source.name })}
      >
        <p>{t(source.upload === null ? "settings.removeAddress" : "settings.removeFile")}</p>
        <div className={styles["buttons"]}>
          <Button onClick={() => setRemoving(false)}>{t("settings.cancel")}</Button>
          <Button kind="danger" onClick={() => void remove()}>
            {t("settings.remove")}
          </Button>
        </div>
      </Dialog>
    </li>
  );
}

function Address() {
  const t = useT();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const field = (name: string) => String(new FormData(form).get(name)).trim();
    setBusy(true);
    try {
      const name = field("name");
      await addSource({ address: field("address"), ...(name ? { name } : {}) });
      setError(null);
      form.reset();
    } catch (error) {
      setError(error);
    }
    setBusy(false);
    await refreshSources();
  };
  return (
    <Part title={t("settings.address")} about={t("settings.addressAbout")}>
      <form className={styles["form"]} onSubmit={(event) => void add(event)} onChange={() => setError(null)}>
        <input
          name="address"
          required
          className={styles["input"]}
          aria-label={t("settings.address")}
          placeholder={t("settings.addressHint")}
          spellCheck={false}
        />
        <input
          name="name"
          className={styles["input"]}
          aria-label={t("settings.sourceName")}
          placeholder={t("settings.sourceName")}
          maxLength={100}
        />
        <Button type="submit" disabled={busy}>
          {t("settings.add")}
        </Button>
      </form>
      {error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(error)}
        </p>
      )}
    </Part>
  );
}
