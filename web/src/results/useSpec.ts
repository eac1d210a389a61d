import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";
import * as api from "../api/results";
import { type ChartChoice, MOST_DRAWN } from "./choices";
import type { Spec } from "./forms";
import type { QueryResult, Row } from "./result";
import { specOf } from "./spec";

/** The specification of a chart with its rows. What was asked for once is not asked for again. */
export function specQuery(threadId: string, result: QueryResult | null, { step, spec, form, key }: ChartChoice) {
  return queryOptions({
    queryKey: ["spec", threadId, step ?? result?.step, result?.label, key],
    staleTime: Infinity,
    async queryFn({ client }): Promise<Spec> {
      if (spec) return spec;
      if (form && result) return specOf(form, result.columns, await allRows(client, threadId, result));
      return api.chart(threadId, step ?? 0);
    },
  });
}

async function allRows(
  client: QueryClient,
  threadId: string,
  { step, rows, total }: QueryResult,
): Promise<readonly Row[]> {
  if (step === null || total === rows.length) return rows;
  const queryFn = () => api.page(threadId, step, { offset: 0, limit: MOST_DRAWN, sort: null, descending: false });
  const page = await client.ensureQueryData({
    queryKey: ["result", threadId, step, "all"],
    queryFn,
    staleTime: Infinity,
  });
  return page.rows as readonly Row[];
}

export const useSpec = (threadId: string, result: QueryResult | null, choice: ChartChoice) =>
  useQuery(specQuery(threadId, result, choice));
