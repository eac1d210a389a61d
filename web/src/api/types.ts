// The server's answers and bodies, as `schema.ts` has them, and short names for parts of them.

import type { Decisions, FeedbackView, ParameterView, RunView, SeenEntry } from "./schema";

export type * from "./schema";

/** `interrupted`: unfinished, and no process executes it. */
export type ShownStatus = RunView["status"];
export type CallDecision = Decisions["decisions"][string];
export type Opinion = FeedbackView["opinion"];
export type How = SeenEntry["how"];
export type ParameterKind = ParameterView["kind"];
