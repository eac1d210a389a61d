import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queryClient } from "../api/cache";
import { models } from "../api/models";
import type { ModelChecked, ModelList, ModelProvider } from "../api/types";
import { useT } from "../i18n";
import { Told } from "../settings/parts";
import styles from "./Connect.module.css";
import { ConnectForm } from "./ConnectForm";
import { Done } from "./Done";
import { PickModel } from "./PickModel";
import { Providers } from "./Providers";

/** What is connected before one of its models is chosen; it is stored when one is. */
export interface Found {
  title: string;
  /** The names of its models; null: it has no list. */
  names: string[] | null;
  /** What begins the names of its models. */
  prefix: string;
  /** Stores it; null: nothing is to be stored. */
  store: (() => Promise<unknown>) | null;
}

/** A provider to connect; null: a server of one's own. */
export type Chosen = ModelProvider | null;

/** Connects a provider or a server, and chooses one of its models for the next questions. */
export function Connect({
  thread,
  provider,
  onClose,
}: {
  thread: string | null;
  provider: string | null;
  onClose: () => void;
}) {
  const t = useT();
  const answer = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => models(signal), staleTime: 30_000 });
  return (
    <Told answer={answer}>
      {(list) =>
        list.keys_allowed ? (
          <Steps list={list} thread={thread} provider={provider} onClose={onClose} />
        ) : (
          <p className={styles["about"]}>{t("connect.elsewhere")}</p>
        )
      }
    </Told>
  );
}

function Steps({
  list,
  thread,
  provider,
  onClose,
}: {
  list: ModelList;
  thread: string | null;
  provider: string | null;
  onClose: () => void;
}) {
  const [chosen, setChosen] = useState<Chosen | undefined>(() =>
    list.providers.find((each) => each.provider === provider),
  );
  const [found, setFound] = useState<Found | null>(null);
  const [checked, setChecked] = useState<ModelChecked | null>(null);
  const done = (model: ModelChecked) => {
    setChecked(model);
    void queryClient.invalidateQueries({ queryKey: ["models"] });
  };
  if (checked) return <Done checked={checked} onClose={onClose} />;
  if (found) return <PickModel found={found} thread={thread} onBack={() => setFound(null)} onDone={done} />;
  if (chosen !== undefined) return <ConnectForm of={chosen} onBack={() => setChosen(undefined)} onFound={setFound} />;
  return <Providers list={list} onChoose={setChosen} onFound={setFound} />;
}
