import { type Language, bring } from "../i18n";

const messages = async (language: Language) =>
  (await (language === "zh" ? import("../i18n/zh/sql") : import("../i18n/en/sql"))).sql;

/** The editor of a query, with its messages. */
export async function loadSqlView() {
  const [{ SqlView }] = await Promise.all([import("./SqlView"), bring(messages)]);
  return SqlView;
}

/** What an edited query gave, with its messages. */
export async function loadTriedCard() {
  const [{ TriedCard }] = await Promise.all([import("./TriedCard"), bring(messages)]);
  return TriedCard;
}
