// Events of a run, in the vocabulary of AG-UI. Only the fields that the page reads.

import type { DecidedCall } from "../api/types";
import type { Failure, RunStatus, WaitingCall } from "./types";

/** What the end of a run says: its last event's result, or the outcome of the history. */
export interface Outcome {
  answer?: string;
  summary?: string;
  reason?: string;
  unfinished?: string;
  error?: Failure;
  calls?: WaitingCall[];
  /** The queries of the run, and those of earlier runs that the answer cites. */
  queries?: { query: string; sql: string; columns: string[] }[];
  usage?: { input_tokens?: number; output_tokens?: number };
}

interface Note {
  step?: number;
  callId?: string;
  ok?: boolean;
  elapsedMs?: number;
  source?: string | null;
  model?: string;
  max_steps?: number;
  continues?: string | null;
  error?: Failure;
  unfinished?: string;
}

export type ToldDecision = Pick<DecidedCall, "id" | "tool" | "decision"> & { by?: string | null; message?: string };

export interface StreamEvent {
  type: string;
  timestamp?: number;
  metadata?: { longthread?: Note };
  runId?: string;
  messageId?: string;
  delta?: string;
  toolCallId?: string;
  toolCallName?: string;
  content?: string;
  name?: string;
  value?: { message?: string; messageId?: string; calls?: ToldDecision[] };
  result?: Outcome & { status: RunStatus };
  code?: string;
  message?: string;
  usage?: unknown;
}
