// The page's two languages. `t("list.rename")` is a message, with ICU plurals: `t("steps", { n })`. A message that one
// language lacks does not compile: the catalogs of `zh` have the type of those of `en`.

import { type Messages, i18n } from "@lingui/core";
import { useLingui } from "@lingui/react";
import { keepAt } from "../store";
import type { MessageId as FirstId } from "./en";
import type { account } from "./en/account";
import type { boards } from "./en/boards";
import type { catalog } from "./en/catalog";
import type { chart } from "./en/chart";
import type { connect } from "./en/connect";
import type { feedback } from "./en/feedback";
import type { files } from "./en/files";
import type { login } from "./en/login";
import type { projects } from "./en/projects";
import type { settings } from "./en/settings";
import type { share } from "./en/share";
import type { sql } from "./en/sql";
import type { team } from "./en/team";

export type MessageId =
  | FirstId
  | keyof typeof account
  | keyof typeof boards
  | keyof typeof catalog
  | keyof typeof chart
  | keyof typeof connect
  | keyof typeof feedback
  | keyof typeof files
  | keyof typeof login
  | keyof typeof projects
  | keyof typeof settings
  | keyof typeof share
  | keyof typeof sql
  | keyof typeof team;
export type Language = "en" | "zh";
export type Values = Record<string, string | number>;

const KEY = "longthread.language";
const isLanguage = (text: unknown): text is Language => text === "en" || text === "zh";

/** The one that was chosen, else the first of the browser's that the page has: `early.js` has found it, and asked for it. */
function preferred(): Language {
  const { lang } = document.documentElement;
  return isLanguage(lang) ? lang : "en";
}

type Load = (language: Language) => Promise<Messages>;
const more: Load[] = [];

/** Adds the messages of a part of the page that is loaded when it is opened. */
export async function bring(load: Load) {
  if (!more.includes(load)) more.push(load);
  i18n.load(current(), await load(current()));
}

async function activate(language: Language) {
  const first = language === "zh" ? import("./zh") : import("./en");
  const [{ messages }, ...rest] = await Promise.all([first, ...more.map((load) => load(language))]);
  i18n.loadAndActivate({ locale: language, messages: Object.assign({}, messages, ...rest) as Messages });
  document.documentElement.lang = locale();
}

/** Loads the preferred language; the page is drawn after it. */
export const begin = () => activate(preferred());

export async function choose(language: Language) {
  keepAt(KEY, language);
  await activate(language);
}

export const current = () => i18n.locale as Language;

/** The browser's own locale of the language that is shown, for numbers and dates. */
export const locale = () =>
  navigator.languages.find((name) => name.toLowerCase().startsWith(current())) ??
  { en: "en-GB", zh: "zh-CN" }[current()];

export const t = (id: MessageId, values?: Values): string => i18n._(id, values);

export const isMessage = (id: string): id is MessageId => id in i18n.messages;

/** Whether a message has all values that it names. */
export function isComplete(id: MessageId, values: Values): boolean {
  const parts = i18n.messages[id];
  return !Array.isArray(parts) || parts.every((part) => !Array.isArray(part) || values[String(part[0])] !== undefined);
}

/** `t`, for a component: it is drawn again in another language. */
export function useT() {
  useLingui();
  return t;
}
