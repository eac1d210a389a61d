import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import * as api from "../api/boards";
import type { BoardPatch, BoardView, CardPatch, CardView } from "../api/types";
import { t } from "../i18n";
import { sentence } from "../i18n/sentence";
import { createStore } from "../store";
import { say } from "../ui";

/** A schedule may refresh it: it is looked at again. */
const LOOK_MS = 60_000;
const AT_ONCE = 2;

/** A board as the server has it. */
export const useBoardQuery = (id: string) =>
  useQuery({ queryKey: ["board", id], queryFn: ({ signal }) => api.board(id, signal), refetchInterval: LOOK_MS });

/** What can be done with a board. Each change is shown as the server has stored it; what fails is said. */
export function useBoardActions(id: string): BoardActions {
  const client = useQueryClient();
  return useMemo(() => new BoardActions(id, client), [client, id]);
}

export class BoardActions {
  /** How many cards of how many are refreshed, while that goes on. */
  readonly busy = createStore<{ done: number; all: number } | null>(null);
  private readonly id: string;
  private readonly client: QueryClient;
  private readonly key: readonly string[];

  constructor(id: string, client: QueryClient) {
    this.id = id;
    this.client = client;
    this.key = ["board", id];
  }

  change = (body: BoardPatch) =>
    this.tried(async () => this.client.setQueryData(this.key, await api.change(this.id, body)));
  changeCard = (card: string, body: CardPatch) =>
    this.tried(async () => this.show(await api.changeCard(this.id, card, body)));
  removeCard = (card: string) =>
    this.tried(
      async () => (await api.removeCard(this.id, card), this.client.invalidateQueries({ queryKey: this.key })),
    );
  /** Returns whether it is gone. */
  remove = async () => {
    const gone = await this.tried(async () => (await api.remove(this.id), true));
    await this.client.invalidateQueries({ queryKey: ["boards"] });
    return gone === true;
  };

  /** Refreshes cards, two at a time: each query has a process of its own. */
  refresh = async (cards: readonly string[]) => {
    if (this.busy.get() || cards.length === 0) return;
    const left = [...cards];
    let [done, failed] = [0, 0];
    const work = async () => {
      for (let card = left.shift(); card !== undefined; card = left.shift()) {
        this.busy.set({ done: done++, all: cards.length });
        // One after the other.
        // oxlint-disable-next-line no-await-in-loop
        if (!(await this.isFresh(card))) failed++;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    this.busy.set(null);
    // When they were read stands on the cards.
    if (failed) say({ text: t("boards.failed", { n: failed }), kind: "bad", about: this.id });
  };

  /** Shows a card that was changed. */
  show = (card: CardView) =>
    this.client.setQueryData<BoardView>(
      this.key,
      (board) => board && { ...board, cards: board.cards.map((each) => (each.id === card.id ? card : each)) },
    );

  private async isFresh(id: string): Promise<boolean> {
    const card = await this.tried(() => api.refresh(this.id, id));
    if (card) this.show(card);
    return card !== null && card.error === null;
  }

  private async tried<Done>(work: () => Promise<Done>): Promise<Done | null> {
    try {
      return await work();
    } catch (error) {
      say({ text: sentence(error), kind: "bad", about: this.id });
      return null;
    }
  }
}
