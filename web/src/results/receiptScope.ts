import { createContext, useContext } from "react";
import type { QueryResult } from "./result";

/** What stands around an answer. */
export interface Scope {
  readonly threadId: string;
  /** The results that it may speak of. */
  readonly results: readonly QueryResult[];
  /** Those of them that stand below it as cards. */
  readonly shown: readonly QueryResult[];
  /** Whether it is only read: nothing can be run. */
  readonly reads: boolean;
}

export const ReceiptScope = createContext<Scope>({ threadId: "", results: [], shown: [], reads: false });

export const useScope = () => useContext(ReceiptScope);
