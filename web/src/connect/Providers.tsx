import { type ReactNode, useEffect, useId, useRef } from "react";
import { providerName } from "../api/models";
import type { ModelList, ModelProvider } from "../api/types";
import { useT } from "../i18n";
import { Icon } from "../ui";
import type { Chosen, Found } from "./Connect";
import styles from "./Connect.module.css";

/** What can be connected: the servers that were found on this machine first. */
export function Providers({
  list,
  onChoose,
  onFound,
}: {
  list: ModelList;
  onChoose: (chosen: Chosen) => void;
  onFound: (found: Found) => void;
}) {
  const t = useT();
  const { providers, servers } = list;
  const steps = useRef<HTMLDivElement>(null);
  useEffect(() => steps.current?.focus({ preventScroll: true }), []);
  const isFound = ({ provider }: ModelProvider) => servers.some(({ kind }) => kind === provider);
  const chips = (kind: ModelProvider["kind"]) =>
    providers
      .filter((each) => each.kind === kind && each.provider !== "own" && !isFound(each))
      .map((each) => (
        <Choice
          key={each.provider}
          label={providerName(list, each.provider)}
          {...(each.connected ? { note: t("connect.connected") } : {})}
          onClick={() => onChoose(each)}
        />
      ));
  return (
    <div ref={steps} className={styles["steps"]} tabIndex={-1}>
      <p className={styles["about"]}>{t("connect.about")}</p>
      {servers.length > 0 && (
        <Group title={t("connect.found")}>
          {servers.map(({ kind, url }) => {
            const title = providerName(list, kind);
            const names = list.models
              .filter(({ origin, provider }) => origin === "local" && provider === kind)
              .map(({ name }) => name);
            return (
              <Choice
                key={kind}
                label={title}
                note={`${new URL(url).host} · ${t("connect.models", { n: names.length })}`}
                onClick={() => onFound({ title, names, prefix: `${kind}:`, store: null })}
              />
            );
          })}
        </Group>
      )}
      <Group title={t("connect.providers")}>{chips("vendor")}</Group>
      <Group title={t("connect.servers")}>
        {chips("own")}
        {chips("local")}
        <Choice label={t("connect.own")} note={t("connect.ownAbout")} onClick={() => onChoose(null)} />
      </Group>
    </div>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className={styles["group"]} aria-labelledby={id}>
      <h3 id={id} className={styles["heading"]}>
        {title}
      </h3>
      <div className={styles["choices"]}>{children}</div>
    </section>
  );
}

function Choice({ label, note, onClick }: { label: string; note?: string; onClick: () => void }) {
  return (
    <button type="button" className={styles["choice"]} onClick={onClick}>
      <span className={styles["label"]}>
        {label}
        {note && <small>{note}</small>}
      </span>
      <Icon name="right" size={16} />
    </button>
  );
}
