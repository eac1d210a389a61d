import { useCallback, useMemo, useState } from "react";
import { queryClient } from "../api/cache";
import * as api from "../api/catalog";
import type { CatalogItem, CatalogList, Json, JsonObject } from "../api/types";
import { useT } from "../i18n";
import { fieldsOf, sentence } from "../i18n/sentence";
import { type CatalogPage, navigate, toDefinition } from "../route";
import { say } from "../ui";
import { type Form, put } from "./draft";

const emptyOf: Record<CatalogPage, JsonObject> = {
  agents: {},
  skills: {},
  tools: { type: "query", schema: { parameters: { type: "object", properties: {} } } },
};

function written(item: CatalogItem | null, kind: CatalogPage): JsonObject {
  if (item === null) return emptyOf[kind];
  const { kind: _, name: __, ...definition } = item.definition ?? {};
  return definition;
}

/** A definition that is edited: what is not saved, what is wrong with it, and how it is saved. */
export function useDraft(kind: CatalogPage, item: CatalogItem | null) {
  const t = useT();
  const [saved, setSaved] = useState(() => ({
    name: item?.name ?? "",
    definition: written(item, kind),
    version: item?.version ?? 0,
  }));
  const [name, setName] = useState(saved.name);
  const [definition, setDefinition] = useState(saved.definition);
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const [bad, setBad] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<string | null>(null);
  /** Counts what the server did not take. */
  const [refused, setRefused] = useState(0);
  const [busy, setBusy] = useState(false);
  /** Counts what is thrown away: fields that keep a text of their own begin again. */
  const [edition, setEdition] = useState(0);
  const isBad = Object.keys(bad).length > 0;
  const dirty = isBad || name !== saved.name || JSON.stringify(definition) !== JSON.stringify(saved.definition);

  const set = useCallback((path: string, value: Json | undefined) => {
    setDefinition((now) => put(now, path, value));
    setWrong((now) =>
      Object.fromEntries(
        Object.entries(now).filter(([field]) => !field.startsWith(path) && !path.startsWith(`${field}.`)),
      ),
    );
  }, []);
  const unreadable = useCallback(
    (path: string, message: string | undefined) =>
      setBad((now) =>
        Object.fromEntries([
          ...Object.entries(now).filter(([field]) => field !== path),
          ...(message === undefined ? [] : [[path, message]]),
        ]),
      ),
    [],
  );
  const form: Form = useMemo(
    () => ({ definition, set, wrong: { ...wrong, ...bad }, unreadable }),
    [definition, set, wrong, bad, unreadable],
  );

  const discard = () => {
    setName(saved.name);
    setDefinition(saved.definition);
    setWrong({});
    setBad({});
    setFailure(null);
    setEdition((now) => now + 1);
  };
  const save = async () => {
    setBusy(true);
    try {
      // Under another name it is renamed by its id.
      const sent = item !== null && name !== saved.name ? { ...definition, id: item.id } : definition;
      const { item: made } = await api.define(kind, name.trim(), sent);
      setSaved({ name: made.name, definition, version: made.version });
      setName(made.name);
      setWrong({});
      setFailure(null);
      say({ text: t("catalog.saved", { name: made.name }) });
      keep(kind, made);
      navigate(toDefinition(kind, made.name), { replace: true, saved: true });
      await refreshCatalog();
    } catch (error) {
      const fields = fieldsOf(error);
      setWrong(fields);
      setFailure(Object.keys(fields).length ? null : sentence(error));
      setRefused((now) => now + 1);
    } finally {
      setBusy(false);
    }
  };
  return {
    name,
    setName,
    definition,
    form,
    saved,
    dirty,
    isBad,
    busy,
    failure,
    refused,
    wrong,
    edition,
    save,
    discard,
  };
}

/** What is known of the catalog has what was saved. */
const keep = (kind: CatalogPage, made: CatalogItem) =>
  queryClient.setQueryData<CatalogList>(
    ["catalog", kind],
    (list) => list && { ...list, items: [...list.items.filter(({ id }) => id !== made.id), made] },
  );

/** What others see of the catalog is asked for again. */
export const refreshCatalog = () =>
  Promise.all(["catalog", "agents"].map((key) => queryClient.invalidateQueries({ queryKey: [key] })));
