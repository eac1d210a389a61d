import { Offline, Problem } from "../api/problem";
import type { JsonObject, Wrong } from "../api/types";
import { type Values, isComplete, isMessage, t } from "./index";

/** An error of a run, a step or the server: its code, its values, and the server's own words. */
export interface Told {
  type: string;
  message?: string;
  params?: JsonObject;
}

/**
 * What a person is told of an error, by its code. The server's own message is for whoever sits at a command line: it is
 * shown where there is no sentence, and where a sentence needs what the error does not say.
 */
export function told({ type, message = "", params = {} }: Told): string {
  const id = `problem.${type}`;
  if (!isMessage(id)) return message || type;
  const values = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)])) as Values;
  return isComplete(id, values) ? t(id, values) : message || type;
}

/** The sentence for whatever was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof Problem) return told({ type: error.code, message: error.message, params: error.params });
  if (error instanceof Offline) return t("problem.offline");
  return error instanceof Error ? error.message : String(error);
}

/** What is wrong with the fields of a definition, by field, in the page's language; the server's words are beside it. */
export function fieldsOf(error: unknown): Record<string, string> {
  const fields = error instanceof Problem ? Object.entries(error.fields) : [];
  return Object.fromEntries(fields.map(([name, wrong]) => [name, toldField(wrong)]));
}

function toldField({ kind, message }: Wrong): string {
  const id = `field.${kind}`;
  return isMessage(id) ? t(id, { detail: message } as Values) : message;
}
