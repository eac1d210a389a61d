import { createContext, useContext } from "react";
import type { QueryResult } from "./result";

export const ReceiptScope = createContext<readonly QueryResult[]>([]);

/** The results that the answer around may speak of. */
export const useResults = () => useContext(ReceiptScope);
