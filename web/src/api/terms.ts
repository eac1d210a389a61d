// What a source was taught: business terms, and examples.

import { get, request } from "./client";
import type { SourceTerms, TermsBody } from "./types";

const at = (source: string) => `/api/sources/${encodeURIComponent(source)}/terms`;

export const terms = (source: string, signal?: AbortSignal) => get<SourceTerms>(at(source), signal);
export const changeTerms = (source: string, change: TermsBody) =>
  request<SourceTerms>("PATCH", at(source), { body: change });
