/** Files that can become a source, as a file field takes them. */
export const KINDS = ".csv,.tsv,.parquet,.xlsx,.json,.jsonl,.ndjson,.sqlite,.sqlite3,.db";

const ENDINGS = KINDS.split(",");

/** Whether a file's name says that it can become one. */
export const isKnown = (name: string): boolean => ENDINGS.some((ending) => name.toLowerCase().endsWith(ending));
