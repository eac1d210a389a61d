import { useQuery } from "@tanstack/react-query";
import * as api from "../api/catalog";
import { Problem } from "../api/problem";
import { useT } from "../i18n";
import { type CatalogPage, isCatalog } from "../route";
import { Agents } from "../settings/Agents";
import type { ShownPage } from "../settings/pages";
import { Note, Part, Told } from "../settings/parts";
import { CatalogList } from "./CatalogList";
import { Editor } from "./Editor";

/** Agents, skills or tools. */
export const Catalog = ({ section, name }: ShownPage) =>
  isCatalog(section) && <Definitions kind={section} name={name} />;

/** The list, or the editor of one. */
function Definitions({ kind, name }: { kind: CatalogPage; name: string | undefined }) {
  const t = useT();
  const answer = useQuery({ queryKey: ["catalog", kind], queryFn: ({ signal }) => api.definitions(kind, signal) });
  if (answer.error instanceof Problem && answer.error.code === "settings_not_allowed") return <Elsewhere kind={kind} />;
  return (
    <Told answer={answer}>
      {(list) => {
        if (name === undefined) return <CatalogList kind={kind} list={list} />;
        const item = list.items.find((each) => each.name === name || each.id === name);
        if (name !== "" && !item) return <Note>{t("catalog.missing")}</Note>;
        return <Editor key={`${kind}/${name}`} kind={kind} item={item ?? null} list={list} />;
      }}
    </Told>
  );
}

/** From another machine nobody sees the catalog, only whom they can ask. */
function Elsewhere({ kind }: { kind: CatalogPage }) {
  const t = useT();
  if (kind !== "agents") {
    return (
      <Part title={t(`settings.page.${kind}`)}>
        <Note>{t("catalog.elsewhere")}</Note>
      </Part>
    );
  }
  return (
    <>
      <Agents />
      <Note>{t("catalog.elsewhere")}</Note>
    </>
  );
}
