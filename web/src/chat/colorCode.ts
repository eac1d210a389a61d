// Code in the page's colours, by the grammars of the editor. Each language comes when it is first read.

import { StandardSQL } from "@codemirror/lang-sql";
import { type Language, StreamLanguage, type StreamParser } from "@codemirror/language";
import { highlightCode, tagHighlighter } from "@lezer/highlight";
import { KINDS } from "./codeKinds";

export interface Piece {
  readonly text: string;
  /** A name of `KINDS`, or empty. */
  readonly kind: string;
}

type Mode = () => Promise<StreamParser<unknown>>;

const clike: Mode = async () => (await import("@codemirror/legacy-modes/mode/clike")).java;
const MODES: Record<string, Mode> = {
  css: async () => (await import("@codemirror/legacy-modes/mode/css")).css,
  diff: async () => (await import("@codemirror/legacy-modes/mode/diff")).diff,
  go: async () => (await import("@codemirror/legacy-modes/mode/go")).go,
  html: async () => (await import("@codemirror/legacy-modes/mode/xml")).html,
  javascript: async () => (await import("@codemirror/legacy-modes/mode/javascript")).javascript,
  json: async () => (await import("@codemirror/legacy-modes/mode/javascript")).json,
  python: async () => (await import("@codemirror/legacy-modes/mode/python")).python,
  r: async () => (await import("@codemirror/legacy-modes/mode/r")).r,
  rust: async () => (await import("@codemirror/legacy-modes/mode/rust")).rust,
  shell: async () => (await import("@codemirror/legacy-modes/mode/shell")).shell,
  toml: async () => (await import("@codemirror/legacy-modes/mode/toml")).toml,
  typescript: async () => (await import("@codemirror/legacy-modes/mode/javascript")).typescript,
  xml: async () => (await import("@codemirror/legacy-modes/mode/xml")).xml,
  yaml: async () => (await import("@codemirror/legacy-modes/mode/yaml")).yaml,
  c: clike,
  "c++": clike,
  cpp: clike,
  csharp: clike,
  java: clike,
};
const OTHER_NAMES: Record<string, string> = {
  bash: "shell",
  console: "shell",
  js: "javascript",
  jsonc: "json",
  jsx: "javascript",
  py: "python",
  sh: "shell",
  ts: "typescript",
  tsx: "typescript",
  yml: "yaml",
  zsh: "shell",
};
const SQL = /^(?:sql|sqlite|postgres(?:ql)?|mysql|duckdb|(?:ansi|pl|t|pl\/pg)sql)$/;
const LONGEST = 20_000;

/** The grammar of a language as a fence names it; null if there is none. */
export async function languageOf(name: string): Promise<Language | null> {
  const known = name.toLowerCase();
  if (SQL.test(known)) return StandardSQL.language;
  const mode = MODES[OTHER_NAMES[known] ?? known];
  return mode ? StreamLanguage.define(await mode()) : null;
}

const highlighter = tagHighlighter(
  Object.entries(KINDS).flatMap(([kind, tagged]) => tagged.map((tag) => ({ tag, class: kind }))),
);

/** The code in pieces of one colour each. */
export function piecesOf(code: string, language: Language | null): Piece[] {
  if (language === null || code.length > LONGEST) return [{ text: code, kind: "" }];
  const pieces: Piece[] = [];
  const put = (text: string, kind: string) => void pieces.push({ text, kind });
  highlightCode(code, language.parser.parse(code), highlighter, put, () => put("\n", ""));
  return pieces;
}
