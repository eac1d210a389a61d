// JSON whose whole numbers beyond 2^53 stay exact: they become strings.

import type { Json, JsonObject } from "./types";

interface Source {
  source?: string;
}

const exact = (_key: string, value: unknown, context?: Source): unknown =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? context?.source
    : value;

/** Reads JSON as `JSON.parse`; a whole number that JavaScript would round becomes its text. */
export function parseExact(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

const raw = (JSON as { rawJSON?: (text: string) => unknown }).rawJSON;

/** A number that would be sent as another one. */
export class NumberTooLarge extends Error {}

/** Digits that every number keeps. */
const KEPT = 15;

function toSend(_key: string, value: unknown, context?: Source): unknown {
  if (typeof value !== "number") return value;
  const source = context?.source;
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "0")) return value;
  const digits =
    source
      ?.replace(/[eE].*$/, "")
      .replace(/\D/g, "")
      .replace(/^0+/, "").length ?? Infinity;
  const isGone = value === 0 && digits > 0;
  if (Number.isFinite(value) && digits <= KEPT && !isGone) return value;
  if (!Number.isFinite(value) || isGone || !raw || source === undefined) throw new NumberTooLarge();
  return raw(source);
}

/**
 * Reads JSON that a person wrote. A number that JavaScript would round is sent as it is written. Raises SyntaxError for
 * what is no JSON, and NumberTooLarge for a number that the browser cannot keep.
 */
export const parseToSend = (text: string): Json =>
  JSON.parse(text, toSend as (key: string, value: unknown) => unknown) as Json;

/**
 * Arguments as the server has them: a whole number that came as its text (`parseExact`) is a number again, at every depth.
 * Where a schema takes texts too, a text stays one.
 */
export const asArguments = (args: JsonObject, parameters: JsonObject): JsonObject =>
  asTaken(args, [parameters], parameters) as JsonObject;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A value as one of the schemas takes it. */
function asTaken(value: Json, schemas: readonly Json[], root: JsonObject): Json {
  const taken = schemas.flatMap((schema) => meant(schema, root, 0));
  if (typeof value === "string") {
    const types = taken.flatMap(({ type }) => type ?? []);
    const isNumber = types.some((type) => type === "integer" || type === "number") && !types.includes("string");
    return isNumber && raw && /^-?[1-9]\d{15,}$/.test(value) ? (raw(value) as Json) : value;
  }
  if (Array.isArray(value))
    return value.map((each, place) =>
      asTaken(
        each,
        taken.map((schema) => itemOf(schema, place)),
        root,
      ),
    );
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      asTaken(
        each,
        taken.map((schema) => propertyOf(schema, name)),
        root,
      ),
    ]),
  );
}

/** Levels of alternatives and references: one may refer to itself. */
const DEEPEST = 8;

/** A schema with what stands in its place: its alternatives, and what it refers to. */
function meant(schema: Json, root: JsonObject, level: number): JsonObject[] {
  if (!isObject(schema) || level > DEEPEST) return [];
  const reference = schema["$ref"];
  const path = typeof reference === "string" && reference.startsWith("#/") ? reference.slice(2).split("/") : null;
  const named = path === null ? [] : [path.reduce<Json>((at, key) => (isObject(at) ? (at[key] ?? null) : null), root)];
  const others = ["anyOf", "oneOf", "allOf"].flatMap((key) => schema[key] ?? []);
  return [schema, ...[...named, ...others].flatMap((each) => meant(each, root, level + 1))];
}

function itemOf({ prefixItems, items = null }: JsonObject, place: number): Json {
  return (Array.isArray(prefixItems) ? prefixItems[place] : undefined) ?? items;
}

function propertyOf({ properties, additionalProperties = null }: JsonObject, name: string): Json {
  return (
    (isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined) ?? additionalProperties
  );
}
