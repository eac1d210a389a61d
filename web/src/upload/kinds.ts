/** Files that can become a source, as a file field takes them. */
export const KINDS = ".csv,.tsv,.parquet,.xlsx,.xls,.json,.jsonl,.ndjson,.sqlite,.sqlite3,.db";

const ENDINGS = KINDS.split(",");

/** Whether a file's name says that it can become one. */
export const isKnown = (name: string): boolean => ENDINGS.some((ending) => name.toLowerCase().endsWith(ending));

/** Whether a file is of text, which has an encoding. */
export const isText = (name: string): boolean => /\.(csv|tsv|json|jsonl|ndjson)$/i.test(name);

/** Whether a file is a database, which is asked alone. */
export const isDatabase = (name: string): boolean => /\.(sqlite3?|db)$/i.test(name);

/** Encodings of files of text, as the server calls them and as people do. */
export const ENCODINGS = [
  ["utf-8", "UTF-8"],
  ["utf-16", "UTF-16"],
  ["gb18030", "GB18030, GBK (简体中文)"],
  ["big5hkscs", "Big5 (繁體中文)"],
  ["cp932", "Shift-JIS (日本語)"],
  ["euc_jp", "EUC-JP (日本語)"],
  ["cp949", "EUC-KR (한국어)"],
  ["cp1252", "Windows-1252 (Western)"],
  ["cp1250", "Windows-1250 (Central European)"],
  ["cp1251", "Windows-1251 (Кириллица)"],
  ["cp437", "DOS (437)"],
] as const;
