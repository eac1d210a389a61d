import { useSources } from "../api/server";
import { addSource } from "../api/sources";
import type { SourceView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { sourceName } from "../layout/Chips";
import { refreshSources } from "../settings/refresh";
import { say } from "../ui";
import { useForm } from "./draft";
import { OneOf } from "./fields";

/** What the sample data is called in the catalog: `demo` is no name there. */
const SAMPLE = "sample";
const ADDED = "+";

interface SourceFieldProps {
  path: string;
  label: string;
  hint?: string;
  none?: string;
}

/**
 * Which source a definition asks. It names one of the catalog, so that it asks the same however a server is started. The
 * sample data, and what the server was started with, are added to the catalog when they are chosen.
 */
export function SourceField({ path, ...field }: SourceFieldProps) {
  const t = useT();
  const { set } = useForm();
  const { data } = useSources();
  const all = data?.sources ?? [];
  const named = all.filter((each) => each.origin === "catalog");
  const others = data?.changeable
    ? all.filter((each) => each.origin !== "catalog" && named.every(({ address }) => address !== each.name))
    : [];
  const add = async ({ name }: SourceView) => {
    try {
      const made = await addSource({ address: name, ...(name === "demo" ? { name: SAMPLE } : {}) });
      set(path, made.name);
      say({ text: t("catalog.sourceAdded", { name: made.name }) });
    } catch (error) {
      set(path, undefined);
      say({ text: sentence(error), kind: "bad" });
    }
    await refreshSources();
  };
  const choose = (value: string) => {
    const other = others.find(({ name }) => value === ADDED + name);
    if (other) void add(other);
  };
  const options = [
    ...named.map(({ name }) => ({ value: name, label: name })),
    ...others.map(({ name }) => ({ value: ADDED + name, label: t("catalog.sourceToAdd", { name: sourceName(name) }) })),
  ];
  return <OneOf path={path} {...field} options={options} onChange={choose} />;
}
