import { useQuery } from "@tanstack/react-query";
import { models, providerName } from "../api/models";
import { chooseModel } from "../chat/model";
import { useT } from "../i18n";
import { openConnect } from "../palette/open";
import { MenuChoices, MenuItem, MenuSeparator } from "../ui";
import { modelName } from "./Chips";
import styles from "./Chips.module.css";

/** What can be asked is looked for when the menu opens. */
export function ModelChoices({
  threadId,
  chosen,
  own,
}: {
  threadId: string | null;
  chosen: string | null;
  own: string;
}) {
  const t = useT();
  const { data, isPending } = useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => models(signal),
    staleTime: 30_000,
  });
  const found = (data?.models ?? []).filter((each) => each.name !== own);
  const known = chosen === null || chosen === own || found.some((each) => each.name === chosen);
  const options = [
    { value: "", label: modelName(own), note: t(own === "demo" ? "settings.model.demo" : "shell.modelOwn") },
    ...(known ? [] : [{ value: chosen, label: modelName(chosen) }]),
    ...found.map(({ name, origin, provider }) => ({
      value: name,
      label: modelName(name),
      note: t(`settings.model.${origin}`, { provider: data ? providerName(data, provider) : "" }),
    })),
  ];
  return (
    <>
      <MenuChoices
        value={chosen === own ? "" : (chosen ?? "")}
        options={options}
        onChoose={(model) => chooseModel(threadId, model || null)}
      />
      {isPending && (
        <p className={styles["note"]} role="status">
          {t("list.loading")}
        </p>
      )}
      {data?.keys_allowed && (
        <>
          <MenuSeparator />
          <MenuItem icon="plus" onClick={() => openConnect(threadId)}>
            {t("shell.connect")}
          </MenuItem>
        </>
      )}
    </>
  );
}
