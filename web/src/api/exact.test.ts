import { expect, test } from "vitest";
import { NumberTooLarge, asArguments, parseExact, parseToSend } from "./exact";

test("a whole number that a person writes is sent as it is written", () => {
  for (const text of [
    '{"a":9007199254740993}',
    '{"a":[-12345678901234567890,1.5,7,"9007199254740993"],"b":{"c":1e3}}',
  ]) {
    const sent = JSON.stringify(parseToSend(text));
    expect(sent).toBe(text.replace("1e3", "1000"));
  }
  expect(() => parseToSend("{")).toThrow(SyntaxError);
  for (const text of ["12345678901234567890.0", "0.12345678901234567890", "1.5", "-9007199254740993e2"])
    expect(JSON.stringify(parseToSend(`[${text}]`))).toBe(`[${text}]`);
  for (const text of ["1000000000000000.99", "0.99999999999999999999", "100.00000000000000001"])
    expect(JSON.stringify(parseToSend(`[${text}]`))).toBe(`[${text}]`);
  for (const text of ["1e400", "1e-400"]) expect(() => parseToSend(`{"a":${text}}`)).toThrow(NumberTooLarge);
  expect(parseToSend("[0, 0.0, -0, 1e3, 9007199254740991]")).toEqual([0, 0, -0, 1000, 9007199254740991]);
});

test("arguments of every depth are shown as the server has them", () => {
  const id = { type: "integer" };
  const parameters = {
    $defs: { node: { type: "object", properties: { id, below: { type: "array", items: { $ref: "#/$defs/node" } } } } },
    properties: {
      ids: { type: "array", items: id },
      pair: { prefixItems: [{ type: "string" }, id] },
      tree: { $ref: "#/$defs/node" },
      maybe: { anyOf: [{ type: "null" }, { type: "number" }] },
      either: { anyOf: [{ type: "string" }, id] },
      listed: { type: ["integer", "null"] },
      more: { additionalProperties: id },
    },
  };
  const n = "9007199254740993";
  const text = `{"ids":[${n},1],"pair":["${n}",${n}],"tree":{"id":${n},"below":[{"id":-${n}}]},"maybe":${n},"either":"${n}","listed":${n},"more":{"a":${n}},"unknown":"${n}"}`;
  expect(JSON.stringify(asArguments(parseExact(text) as Record<string, string>, parameters))).toBe(text);
});

test("arguments are shown as the server has them", () => {
  const args = parseExact('{"account":9007199254740993,"code":"9007199254740993","n":3}') as Record<string, string>;
  const parameters = { properties: { account: { type: "integer" }, code: { type: "string" }, n: { type: "integer" } } };
  expect(asArguments({ account: "0000000000000001" }, parameters)).toEqual({ account: "0000000000000001" });
  expect(JSON.stringify(asArguments(args, parameters))).toBe(
    '{"account":9007199254740993,"code":"9007199254740993","n":3}',
  );
});
