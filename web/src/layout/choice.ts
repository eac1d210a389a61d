// With whom a new conversation is, and which source it asks. What a person has not chosen follows the server.

import type { AgentInfo } from "../api/types";
import { useAgents, useInfo, useSources } from "../api/server";
import { createStore, keepAt, keptAt, useStore } from "../store";

interface Chosen {
  agent: string | null;
  source: string | null;
}

const chosen = createStore<Chosen>({ agent: null, source: null });

export const chooseAgent = (agent: string) => chosen.set({ ...chosen.get(), agent });
export const chooseSource = (source: string) => chosen.set({ ...chosen.get(), source: source.trim() || null });

/** Where the browser keeps the source that the last question named. */
const LAST = "longthread.source";

/** Keeps the source that a question named; no address of a database, which may hold a password. */
export const keepSource = (source: string | undefined) =>
  source !== undefined && !source.includes("://") && keepAt(LAST, source);

const inThread = createStore<Readonly<Record<string, string>>>({});

/** What the next question of a conversation asks; null: what the last one did. */
export function chooseSourceIn(threadId: string, source: string | null) {
  const { [threadId]: _, ...rest } = inThread.get();
  inThread.set(source === null ? rest : { ...rest, [threadId]: source });
}

/** The source that was chosen for the next question of a conversation; null: none was. */
export const chosenIn = (threadId: string): string | null => inThread.get()[threadId] ?? null;

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

const NONE: AgentInfo[] = [];
const ANALYST: AgentInfo = { id: "", name: "analyst", description: "", asks_source: true, source: null, model: null };

export interface Choice {
  agent: AgentInfo;
  agents: AgentInfo[];
  /** What is asked; null: nothing, or what the server decides. */
  source: string | null;
  /** The sources that may be named: `any`, or these. Null: the agent asks none, or has its own. */
  sources: "any" | string[] | null;
  /** Whether it is known what the source is. */
  settled: boolean;
  /** The fields of the first question. */
  fields: { agent?: string; source?: string };
}

export function useChoice(): Choice {
  const { agent: id, source } = useStore(chosen);
  const { data: info } = useInfo();
  const { data: agents = NONE, isPending } = useAgents();
  const first = agents[0] ?? ANALYST;
  const agent = agents.find((each) => each.id === id) ?? first;
  const isFree = agent.asks_source && agent.source === null;
  const preset = useFirstSource(isFree && source === null);
  const asked = !agent.asks_source ? null : isFree ? (source ?? preset ?? null) : agent.source;
  const fields = {
    ...(agent === first ? {} : { agent: agent.id }),
    ...(isFree && asked !== null ? { source: asked } : {}),
  };
  return {
    agent,
    agents,
    source: asked,
    sources: isFree ? (info?.sources ?? null) : null,
    settled: !isPending && (!isFree || source !== null || preset !== undefined),
    fields,
  };
}

/**
 * The source of a new conversation for which nobody has chosen one: the server's; where it has none of somebody's own,
 * the one that the last conversation asked, or the only one there is. Undefined: that is not known yet.
 */
function useFirstSource(isWanted: boolean): string | null | undefined {
  const { data: info, isPending } = useInfo();
  const own = info?.source ?? null;
  const isOpen = info?.sources === "any";
  const looks = isWanted && isOpen && isSample(own);
  const list = useSources(looks);
  if (!info) return isPending ? undefined : null;
  if (!isSample(own)) return own;
  if (looks && list.isPending) return undefined;
  const names = info.sources === "any" ? (list.data?.sources ?? []).map(({ name }) => name) : info.sources;
  const last = keptAt(LAST);
  if (last !== null && (names.includes(last) || (isOpen && isPath(last)))) return last;
  const [only, ...more] = names.filter((name) => !isSample(name));
  return own ?? (more.length === 0 ? (only ?? null) : null);
}

const isSample = (source: string | null) => source === null || source === "demo";
/** Whether it is a path, which no list has. */
const isPath = (source: string) => /[\\/]/.test(source);
