import { useQuery } from "@tanstack/react-query";
import { useAgents, useInfo } from "../api/server";
import { models } from "../api/sources";
import { chooseModel, useModel } from "../chat/model";
import { useT } from "../i18n";
import { Menu, MenuChoices } from "../ui";
import { Chip } from "./Chips";
import styles from "./Chips.module.css";

/** The model of the next questions. `agent` is the name of whom they go to; null: the one asked by default. */
export function ModelChip({ threadId, agent }: { threadId: string | null; agent: string | null }) {
  const t = useT();
  const chosen = useModel(threadId);
  const agents = useAgents().data ?? [];
  const { data: info } = useInfo();
  const own = agents.find((each) => each.name === agent)?.model ?? info?.model;
  if (own === undefined) return null;
  return (
    <Menu align="start" trigger={<Chip label={t("shell.model")} value={chosen ?? own} />}>
      <Choices threadId={threadId} chosen={chosen} own={own} />
    </Menu>
  );
}

/** What can be asked is looked for when the menu opens. */
function Choices({ threadId, chosen, own }: { threadId: string | null; chosen: string | null; own: string }) {
  const t = useT();
  const { data, isPending } = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => models(signal), staleTime: 30_000 });
  const found = (data?.models ?? []).filter((each) => each.name !== own);
  const known = chosen === null || chosen === own || found.some((each) => each.name === chosen);
  const options = [
    { value: "", label: own, note: t(own === "demo" ? "settings.model.demo" : "shell.modelOwn") },
    ...(known ? [] : [{ value: chosen, label: chosen }]),
    ...found.map(({ name, origin, provider }) => ({ value: name, label: name, note: t(`settings.model.${origin}`, { provider: provider ?? "" }) })),
  ];
  return (
    <>
      <MenuChoices value={chosen === own ? "" : (chosen ?? "")} options={options} onChoose={(model) => chooseModel(threadId, model || null)} />
      {isPending && <p className={styles["note"]} role="status">{t("list.loading")}</p>}
    </>
  );
}
