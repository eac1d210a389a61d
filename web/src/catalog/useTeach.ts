import { useState } from "react";
import { queryClient } from "../api/cache";
import { changeTerms } from "../api/terms";
import type { Json, JsonObject, SourceTerms, TermsBody } from "../api/types";
import { fieldsOf, sentence } from "../i18n/sentence";
import { type Form, put } from "./draft";

/** Teaches a source, and keeps what it knows then. */
export async function teach(source: string, change: TermsBody) {
  const taught = await changeTerms(source, change);
  queryClient.setQueryData<SourceTerms>(["terms", source], taught);
}

/** A term or an example while it is written. `change` says what is sent of it. */
export function useTeach(
  source: string,
  before: JsonObject,
  change: (written: JsonObject) => TermsBody,
  onDone: () => void,
) {
  const [definition, setDefinition] = useState(before);
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const set = (path: string, value: Json | undefined) => {
    setDefinition((now) => put(now, path, value));
    setWrong((now) => Object.fromEntries(Object.entries(now).filter(([field]) => field !== path)));
  };
  const save = async () => {
    setBusy(true);
    try {
      await teach(source, change(definition));
      onDone();
    } catch (error) {
      // The server names a field by its place among all: `terms[3].sql`.
      const fields = Object.entries(fieldsOf(error)).map(
        ([field, message]) => [field.replace(/^.*\./, ""), message] as const,
      );
      setWrong(Object.fromEntries(fields));
      setFailure(fields.length ? null : sentence(error));
    } finally {
      setBusy(false);
    }
  };
  const form: Form = { definition, set, wrong, unreadable: () => undefined };
  return { form, failure, busy, save, dirty: JSON.stringify(definition) !== JSON.stringify(before) };
}
