// A definition while it is edited. A field is named by its path, as the server names what is wrong: `config.model`.

import { type Context, createContext, useContext } from "react";
import type { Json, JsonObject } from "../api/types";

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The object at a field; an empty one where there is none. */
export function objectAt(definition: JsonObject, path: string): JsonObject {
  const found = at(definition, path);
  return isObject(found) ? found : {};
}

export function at(definition: JsonObject, path: string): Json | undefined {
  return path
    .split(".")
    .reduce<Json | undefined>((value, key) => (isObject(value) ? value[key] : undefined), definition);
}

/** The definition with another value at a field; undefined takes the field away. */
export function put(definition: JsonObject, path: string, value: Json | undefined): JsonObject {
  const [first = "", ...rest] = path.split(".");
  return putKey(definition, first, rest.length ? put(objectAt(definition, first), rest.join("."), value) : value);
}

/** An object with another value under a key, whatever is in its name. */
export function putKey(object: JsonObject, key: string, value: Json | undefined): JsonObject {
  const { [key]: _, ...others } = object;
  return value === undefined ? others : { ...object, [key]: value };
}

export const textAt = (definition: JsonObject, path: string) => {
  const value = at(definition, path);
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
};

export const textsAt = (definition: JsonObject, path: string) => {
  const value = at(definition, path);
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
};

/** What is wrong with a field, or with a part of it. */
export function wrongAt(wrong: Record<string, string>, path: string, { alone = false } = {}): string | undefined {
  const found = Object.entries(wrong).filter(
    ([field]) => field === path || (!alone && (field.startsWith(`${path}[`) || field.startsWith(`${path}.`))),
  );
  return found.length ? found.map(([, message]) => message).join(" ") : undefined;
}

export interface Form {
  definition: JsonObject;
  set: (path: string, value: Json | undefined) => void;
  wrong: Record<string, string>;
  /** A field holds what cannot be sent, such as half of a JSON text; undefined: it does not any more. */
  unreadable: (path: string, message: string | undefined) => void;
}

export const FormContext: Context<Form | null> = createContext<Form | null>(null);

export function useForm(): Form {
  const form = useContext(FormContext);
  if (form === null) throw new Error("a field stands outside a form");
  return form;
}
