import { expect, test } from "vitest";
import { loginAt, pathBack } from "./away";

const HERE = "https://longthread.example";

test.each([
  ["/c/a%2Fb?at=e1#x", "/c/a%2Fb?at=e1#x"],
  ["https://longthread.example/boards", "/boards"],
  ["/settings/you", "/settings/you"],
  [null, "/"],
  ["", "/"],
])("after a login at %j the page is at %j", (text, path) => expect(pathBack(text, HERE)).toBe(path));

test.each([
  "https://evil.example/",
  "//evil.example/",
  String.raw`/\evil.example`,
  String.raw`\\evil.example`,
  "/\t/evil.example",
  "/.//evil.example",
  "javascript:alert(1)",
  "data:text/html,x",
  "http://longthread.example/",
  "https://longthread.example.evil.example/",
  "https://longthread.example@evil.example/",
  "https://[",
  "/login",
  "/login?next=/login",
  "/api/logout",
])("a login leads to no other server, and not to itself: %j", (text) => expect(pathBack(text, HERE)).toBe("/"));

test("where the page was goes through the address of the login", () => {
  const address = new URL(loginAt("/c/a%2Fb?at=e&x=1#y"), HERE);
  expect(address.pathname).toBe("/login");
  expect(pathBack(address.searchParams.get("next"), HERE)).toBe("/c/a%2Fb?at=e&x=1#y");
  expect(loginAt("/")).toBe("/login");
});
