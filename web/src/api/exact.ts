// JSON whose whole numbers beyond 2^53 stay exact: they become strings.

import type { Json, JsonObject } from "./types";

interface Source {
  source?: string;
}

const exact = (_key: string, value: unknown, context?: Source): unknown =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context?.source : value;

/** Reads JSON as `JSON.parse`; a whole number that JavaScript would round becomes its text. */
export function parseExact(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

const raw = (JSON as { rawJSON?: (text: string) => unknown }).rawJSON;

function toSend(_key: string, value: unknown, context?: Source): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  const isWhole = source === undefined ? Number.isInteger(value) : /^-?\d+$/.test(source);
  if (isWhole && raw && source !== undefined) return raw(source);
  if (isWhole || !Number.isFinite(value)) throw new SyntaxError("A number that this browser cannot keep.");
  return value;
}

/**
 * Reads JSON that a person wrote. A whole number that JavaScript would round is sent as it is written. Raises SyntaxError
 * for what is no JSON, and for a number that the browser cannot keep.
 */
export const parseToSend = (text: string): Json => JSON.parse(text, toSend as (key: string, value: unknown) => unknown) as Json;

/** Arguments as the server has them: a whole number that came as its text (`parseExact`) is a number again. */
export function asArguments(args: JsonObject, parameters: JsonObject): JsonObject {
  const properties = (parameters["properties"] ?? {}) as Record<string, { type?: unknown } | undefined>;
  const exact = ([name, value]: [string, Json]): [string, Json] => {
    const isNumber = ["integer", "number"].includes(String(properties[name]?.type));
    return [name, isNumber && typeof value === "string" && /^-?[1-9]\d{15,}$/.test(value) && raw ? (raw(value) as Json) : value];
  };
  return Object.fromEntries(Object.entries(args).map(exact));
}
