import { afterEach, expect, test, vi } from "vitest";
import { keepSource } from "./choice";

afterEach(() => vi.unstubAllGlobals());

test("the browser keeps names and paths of sources, and no address with a password", () => {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => kept.set(key, text),
  });
  keepSource("postgresql://me:secret@db/x");
  keepSource(undefined);
  expect([...kept.values()]).toEqual([]);
  keepSource("data/sales.csv");
  expect([...kept.values()]).toEqual(["data/sales.csv"]);
});
