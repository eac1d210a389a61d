import { expect, test } from "vitest";
import { kindOf } from "./types";

test.each([
  ["VARCHAR", "text"],
  ["varchar(20)", "text"],
  ["BIGINT", "number"],
  ["UBIGINT", "number"],
  ["INTEGER", "number"],
  ["DECIMAL(18,2)", "number"],
  ["DOUBLE", "number"],
  ["DATE", "date"],
  ["TIMESTAMP_NS", "moment"],
  ["TIMESTAMP WITH TIME ZONE", "moment"],
  ["TIME", "time"],
  ["BOOLEAN", "truth"],
  ["VARCHAR[]", "list"],
  ["STRUCT(a DATE)[]", "list"],
  ["STRUCT(a INTEGER)", "object"],
  ["JSON", "object"],
  ["BLOB", null],
  ["", null],
  ["INTERVAL", null],
])("%s is %s", (type, kind) => expect(kindOf(type)).toBe(kind));
