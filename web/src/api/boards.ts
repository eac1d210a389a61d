// Boards: saved results, their parameters, schedules and links.

import { get, post, query, request } from "./client";
import type {
  BoardList,
  BoardPatch,
  BoardSummary,
  BoardView,
  CardBody,
  CardPatch,
  CardView,
  SharedBoard,
} from "./types";

export const pathOf = (board: string) => `/api/boards/${encodeURIComponent(board)}`;
const cardPath = (board: string, card: string) => `${pathOf(board)}/cards/${encodeURIComponent(card)}`;

export const boards = (signal?: AbortSignal) => get<BoardList>("/api/boards", signal);
export const create = (title: string) => post<BoardSummary>("/api/boards", { title });
export const board = (id: string, signal?: AbortSignal) => get<BoardView>(pathOf(id), signal);
export const change = (id: string, body: BoardPatch) => request<BoardView>("PATCH", pathOf(id), { body });
export const remove = (id: string) => request<void>("DELETE", pathOf(id));
export const save = (id: string, body: CardBody) => post<CardView>(`${pathOf(id)}/cards`, body);
export const refresh = (id: string, card: string) => post<CardView>(`${cardPath(id, card)}/refresh`);
export const changeCard = (id: string, card: string, body: CardPatch) =>
  request<CardView>("PATCH", cardPath(id, card), { body });
export const removeCard = (id: string, card: string) => request<void>("DELETE", cardPath(id, card));
/** The address of all rows of a card as a file. */
export const filePath = (id: string, card: string, format: "csv" | "xlsx") =>
  `${cardPath(id, card)}/file${query({ format })}`;
export const shared = (token: string, signal?: AbortSignal) =>
  get<SharedBoard>(`/api/shared/boards/${encodeURIComponent(token)}`, signal);
