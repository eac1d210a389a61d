// With whom a new conversation is, and which source it asks. What a person has not chosen follows the server.

import type { AgentInfo } from "../api/types";
import { useAgents, useInfo } from "../api/server";
import { createStore, useStore } from "../store";

interface Chosen {
  agent: string | null;
  source: string | null;
}

const chosen = createStore<Chosen>({ agent: null, source: null });

export const chooseAgent = (agent: string) => chosen.set({ ...chosen.get(), agent });
export const chooseSource = (source: string) => chosen.set({ ...chosen.get(), source: source.trim() || null });

const inThread = createStore<Readonly<Record<string, string>>>({});

/** What the next question of a conversation asks; null: what the last one did. */
export function chooseSourceIn(threadId: string, source: string | null) {
  const { [threadId]: _, ...rest } = inThread.get();
  inThread.set(source === null ? rest : { ...rest, [threadId]: source });
}

/** The source that was chosen for the next question of a conversation, or of new ones; null: none was. */
export const chosenSource = (threadId: string | null): string | null => (threadId === null ? chosen.get().source : (inThread.get()[threadId] ?? null));

export const useSourceIn = (threadId: string): string | null => useStore(inThread)[threadId] ?? null;

/** Whether an agent asks the source that a question names. */
export function useAsksAny(name: string | null | undefined): boolean {
  const agents = useAgents().data ?? [];
  return agents.some((each) => each.name === name && each.asks_source && each.source === null);
}

/** Whether an agent asks a source at all: one may name a source, and have no skill for it. */
export function useAsksSource(name: string | null | undefined): boolean {
  return (useAgents().data ?? []).find((each) => each.name === name)?.asks_source ?? true;
}

const ANALYST: AgentInfo = { id: "", name: "analyst", description: "", asks_source: true, source: null, model: null };

export interface Choice {
  agent: AgentInfo;
  agents: AgentInfo[];
  /** What is asked; null: nothing, or what the server decides. */
  source: string | null;
  /** The sources that may be named: `any`, or these. Null: the agent asks none, or has its own. */
  sources: "any" | string[] | null;
  /** The fields of the first question. */
  fields: { agent?: string; source?: string };
}

export function useChoice(): Choice {
  const { agent: id, source } = useStore(chosen);
  const { data: info } = useInfo();
  const agents = useAgents().data ?? [];
  const first = agents[0] ?? ANALYST;
  const agent = agents.find((each) => each.id === id) ?? first;
  const isFree = agent.asks_source && agent.source === null;
  const asked = !agent.asks_source ? null : isFree ? (source ?? info?.source ?? null) : agent.source;
  const fields = {
    ...(agent === first ? {} : { agent: agent.id }),
    ...(isFree && asked !== null ? { source: asked } : {}),
  };
  return { agent, agents, source: asked, sources: isFree ? (info?.sources ?? null) : null, fields };
}
