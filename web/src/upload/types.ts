// The types of columns, as people call them. Databases have names of their own for them.

import type { MessageId } from "../i18n";

export type ColumnKind = "text" | "number" | "date" | "moment" | "time" | "truth" | "list" | "object";

const KINDS: readonly (readonly [ColumnKind, RegExp])[] = [
  ["list", /\[\d*\]$|^LIST/],
  ["object", /^(STRUCT|MAP|JSON|UNION)/],
  ["moment", /^(TIMESTAMP|DATETIME)/],
  ["date", /^DATE/],
  ["time", /^TIME/],
  ["truth", /^BOOL/],
  ["number", /^(U?(TINY|SMALL|MEDIUM|BIG|HUGE)?INT(EGER|\d)?\b|DECIMAL|NUMERIC|DOUBLE|FLOAT|REAL)/],
  ["text", /CHAR|TEXT|STRING|UUID|ENUM|CLOB/],
];

/** The kind of a type, as databases write it; null: another one. */
export const kindOf = (type: string): ColumnKind | null =>
  KINDS.find(([, form]) => form.test(type.toUpperCase()))?.[0] ?? null;

export const kindName = (kind: ColumnKind): MessageId => `files.${kind}`;
