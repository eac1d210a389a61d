import { createContext, useContext } from "react";
import type { ColumnFormat } from "../formats/columnFormat";
import type { QueryResult } from "./result";

/** What stands around an answer. */
export interface Scope {
  /** The results that it may speak of. */
  readonly results: readonly QueryResult[];
  /** Those of them that stand below it as cards. */
  readonly shown: readonly QueryResult[];
  /** How the columns of one of them are written. */
  readonly formatsOf: (result: QueryResult) => readonly ColumnFormat[];
  /** Whether it is only read: nothing can be run. */
  readonly reads: boolean;
}

export const ReceiptScope = createContext<Scope>({ results: [], shown: [], formatsOf: () => [], reads: false });

export const useScope = () => useContext(ReceiptScope);
