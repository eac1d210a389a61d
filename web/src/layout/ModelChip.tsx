import { Suspense, lazy, memo } from "react";
import { useAgents, useInfo } from "../api/server";
import { useIsDemo, useModel } from "../chat/model";
import { useT } from "../i18n";
import { bringSettings } from "../settings/messages";
import { Menu } from "../ui";
import { Chip, modelName } from "./Chips";

const ModelChoices = lazy(() =>
  Promise.all([import("./ModelChoices"), bringSettings()]).then(([{ ModelChoices }]) => ({ default: ModelChoices })),
);

/** The model of the next questions. The demo model is marked. `agent` is the name of whom they go to; null: the one asked by default. */
export const ModelChip = memo(function ModelChip({
  threadId,
  agent,
}: {
  threadId: string | null;
  agent: string | null;
}) {
  const t = useT();
  const chosen = useModel(threadId);
  const agents = useAgents().data ?? [];
  const { data: info } = useInfo();
  const isDemo = useIsDemo(threadId);
  const own = agents.find((each) => each.name === agent)?.model ?? info?.model;
  if (own === undefined) return null;
  const asked = chosen ?? own;
  const told = isDemo ? { "data-demo": "", title: t("shell.demoHint") } : {};
  return (
    <Menu align="start" trigger={<Chip icon="model" label={t("shell.model")} value={modelName(asked)} {...told} />}>
      <Suspense>
        <ModelChoices threadId={threadId} chosen={chosen} own={own} />
      </Suspense>
    </Menu>
  );
});
