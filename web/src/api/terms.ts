// What a source was taught: business terms, and examples.

import { get, request } from "./client";

export interface SourceTerm {
  name: string;
  meaning: string | null;
  sql: string | null;
  synonyms: string[];
}

export interface SourceExample {
  question: string;
  sql: string;
}

export interface SourceTerms {
  source: string;
  version: number;
  description: string | null;
  terms: SourceTerm[];
  examples: SourceExample[];
  metrics: string[];
  changeable: boolean;
}

/** What is taught or taken away, all of it or nothing. */
export interface TermsBody {
  description?: string | null;
  terms?: { name: string; meaning?: string; sql?: string; synonyms?: string[] }[];
  examples?: SourceExample[];
  remove_terms?: string[];
  remove_examples?: string[];
}

const at = (source: string) => `/api/sources/${encodeURIComponent(source)}/terms`;

export const terms = (source: string, signal?: AbortSignal) => get<SourceTerms>(at(source), signal);
export const changeTerms = (source: string, change: TermsBody) => request<SourceTerms>("PATCH", at(source), { body: change });
