// The results of queries: pages of rows, files, charts, and queries that are edited and run.

import type { Formats } from "../formats/chosen";
import { at, get, post, query } from "./client";
import type { EditedQuery, JsonObject, ResultRows, StepView, TriedQuery } from "./types";

export interface PageAsked {
  offset: number;
  limit: number;
  sort: string | null;
  descending: boolean;
}

export type FileFormat = "csv" | "xlsx" | "parquet";

const ofStep = (thread: string, step: number, rest = "") => at(thread, `/steps/${step}${rest}`);

export const step = (thread: string, index: number, signal?: AbortSignal) =>
  get<StepView>(ofStep(thread, index), signal);
export const page = (thread: string, index: number, asked: PageAsked, signal?: AbortSignal) =>
  get<ResultRows>(
    ofStep(thread, index, `/result${query({ ...asked, descending: asked.sort === null ? null : asked.descending })}`),
    signal,
  );
/** The address of all rows as a file. `formats` are those that were chosen for columns; `shown` writes cells as the table does. */
export const filePath = (thread: string, index: number, format: FileFormat, formats: Formats, shown = false) =>
  ofStep(
    thread,
    index,
    `/result/file${query({ format, formats: Object.keys(formats).length ? JSON.stringify(formats) : null, shown: shown || null })}`,
  );
export const chart = (thread: string, index: number, signal?: AbortSignal) =>
  get<JsonObject>(ofStep(thread, index, "/chart"), signal);
/** Runs an edited query, and writes nothing. */
export const tryEdited = (thread: string, index: number, sql: string) =>
  post<TriedQuery>(ofStep(thread, index, "/try"), { sql });
/** Runs an edited query as another branch. */
export const runEdited = (thread: string, index: number, sql: string) =>
  post<EditedQuery>(ofStep(thread, index, "/edit"), { sql });
