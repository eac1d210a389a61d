// The rows of a page of a result: those that came with the step, or the server's.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as api from "../api/results";
import type { QueryResult, Row } from "./result";

export interface Sort {
  readonly column: string | null;
  readonly descending: boolean;
}

const UNSORTED: Sort = { column: null, descending: false };

/** A page of a result, and how to come to another. `row` is a row of the query to begin with. */
export function useRows(threadId: string, result: QueryResult, size: number, row = 0) {
  const [sort, setSort] = useState(UNSORTED);
  const [offset, setOffset] = useState(Math.floor(row / size) * size);
  const { rows, total, step } = result;
  const isHere = sort.column === null && offset + size <= rows.length;
  const isWhole = total !== null && total <= rows.length;
  const asks = step !== null && !isHere && !(sort.column === null && isWhole);
  const asked = { offset, limit: size, sort: sort.column, descending: sort.descending };
  const page = useQuery({
    queryKey: ["result", threadId, step, asked],
    queryFn: ({ signal }) => api.page(threadId, step ?? 0, asked, signal),
    enabled: asks,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
  const found = asks ? page.data : undefined;
  return {
    rows: asks ? ((found?.rows ?? []) as readonly Row[]) : rows.slice(offset, offset + size),
    /** Where the rows shown begin: those of the page before stay until the next is there. */
    offset: asks ? (found?.offset ?? offset) : offset,
    // Where the server has no pages, there are no more.
    total: step === null ? rows.length : found ? found.total : total,
    sort,
    loading: asks && page.isFetching,
    error: asks ? page.error : null,
    rerun: found?.rerun ?? false,
    cut: found?.cut_cells ?? 0,
    whole: found?.whole ?? (step !== null || total === null || isWhole),
    retry: () => void page.refetch(),
    go: setOffset,
    /** Up, down, and as the query has it. */
    sortBy(column: string) {
      setOffset(0);
      setSort(
        sort.column !== column
          ? { column, descending: false }
          : sort.descending
            ? UNSORTED
            : { column, descending: true },
      );
    },
  };
}

export type Rows = ReturnType<typeof useRows>;
