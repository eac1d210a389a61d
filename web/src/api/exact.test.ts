import { expect, test } from "vitest";
import { asArguments, parseExact, parseToSend } from "./exact";

test("a whole number that a person writes is sent as it is written", () => {
  for (const text of ['{"a":9007199254740993}', '{"a":[-12345678901234567890,1.5,7,"9007199254740993"],"b":{"c":1e3}}']) {
    const sent = JSON.stringify(parseToSend(text));
    expect(sent).toBe(text.replace("1e3", "1000"));
  }
  expect(() => parseToSend("{")).toThrow(SyntaxError);
  expect(() => parseToSend('{"a":1e400}')).toThrow(SyntaxError);
});

test("arguments are shown as the server has them", () => {
  const args = parseExact('{"account":9007199254740993,"code":"9007199254740993","n":3}') as Record<string, string>;
  const parameters = { properties: { account: { type: "integer" }, code: { type: "string" }, n: { type: "integer" } } };
  expect(asArguments({ account: "0000000000000001" }, parameters)).toEqual({ account: "0000000000000001" });
  expect(JSON.stringify(asArguments(args, parameters))).toBe('{"account":9007199254740993,"code":"9007199254740993","n":3}');
});
