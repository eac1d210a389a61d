// Boards: saved results, their parameters, schedules and links.

import { get, post, query, request } from "./client";
import type { JsonObject } from "./types";

export type Interval = "hour" | "day" | "week";
export type ParameterKind = "text" | "number" | "date";

/** A place `{{name}}` of a query, with its value. `label` is what people read; empty: the name. */
export interface ParameterView {
  name: string;
  label: string;
  kind: ParameterKind;
  value: string | number;
}

/** A card as a link shows it. `parameters` have the values that its rows were read with. `look` is how it is shown: see `boards/look.ts`. */
export interface SharedCard {
  id: string;
  title: string;
  question: string;
  sql: string;
  parameters: ParameterView[];
  look: JsonObject;
  result: { columns: string[]; rows: unknown[][]; total: number | null; formats: JsonObject };
  read_at: string;
}

/** A saved result. `parameters` have the values that hold now, `values_read` are those that its rows were read with. `thread_id` and `message` lead to its conversation; null where that is deleted. */
export interface CardView extends SharedCard {
  values_read: Record<string, string | number>;
  thread_id: string | null;
  message: string | null;
  source: string | null;
  error: JsonObject | null;
}

export interface BoardSummary {
  id: string;
  title: string;
  cards: number;
  refresh_every: Interval | null;
  created_at: string;
  updated_at: string;
}

/** A board with its cards in their order. */
export interface BoardView {
  id: string;
  title: string;
  refresh_every: Interval | null;
  created_at: string;
  updated_at: string;
  cards: CardView[];
}

/** A board as it was when it was shared. */
export interface SharedBoard {
  title: string;
  shared_at: string;
  cards: SharedCard[];
}

export interface BoardChange {
  title?: string;
  /** Null: by hand. */
  refresh_every?: Interval | null;
  given?: Record<string, string | number>;
  order?: string[];
}

export interface CardChange {
  title?: string;
  look?: JsonObject;
  sql?: string;
  parameters?: ParameterView[];
}

export const pathOf = (board: string) => `/api/boards/${encodeURIComponent(board)}`;
const cardPath = (board: string, card: string) => `${pathOf(board)}/cards/${encodeURIComponent(card)}`;

export const boards = (signal?: AbortSignal) => get<{ boards: BoardSummary[] }>("/api/boards", signal);
export const create = (title: string) => post<BoardSummary>("/api/boards", { title });
export const board = (id: string, signal?: AbortSignal) => get<BoardView>(pathOf(id), signal);
export const change = (id: string, body: BoardChange) => request<BoardView>("PATCH", pathOf(id), { body });
export const remove = (id: string) => request<void>("DELETE", pathOf(id));
export const save = (id: string, body: { thread_id: string; step: number; title: string; look: JsonObject }) => post<CardView>(`${pathOf(id)}/cards`, body);
export const refresh = (id: string, card: string) => post<CardView>(`${cardPath(id, card)}/refresh`);
export const changeCard = (id: string, card: string, body: CardChange) => request<CardView>("PATCH", cardPath(id, card), { body });
export const removeCard = (id: string, card: string) => request<void>("DELETE", cardPath(id, card));
/** The address of all rows of a card as a file. */
export const filePath = (id: string, card: string, format: "csv" | "xlsx") => `${cardPath(id, card)}/file${query({ format })}`;
export const shared = (token: string, signal?: AbortSignal) => get<SharedBoard>(`/api/shared/boards/${encodeURIComponent(token)}`, signal);
