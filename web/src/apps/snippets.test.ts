import { expect, test } from "vitest";
import { type Place, WAYS, snippetsOf } from "./snippets";

const PLACE: Place = {
  server: "http://127.0.0.1:8765",
  thread: "t1",
  agent: "analyst",
  model: "demo",
  user: "ada",
  database: "/data/conversations.db",
  isOwn: true,
  question: "How many?",
};

test("the address of a server's database, which may hold a password, is read from the environment", () => {
  for (const database of [null, "postgresql://ada@db/longthread", "/data/postgres"]) {
    const codes = WAYS.flatMap((way) => snippetsOf[way]({ ...PLACE, database })).map(({ code }) => code);
    expect(codes.filter((code) => code.includes("LONGTHREAD_DATABASE_URL")).length).toBe(2);
    if (database) expect(codes.join()).not.toContain(database);
  }
  expect(snippetsOf.langgraph(PLACE)[0]?.code).toContain('"/data/conversations.db", user_id="ada"');
});
