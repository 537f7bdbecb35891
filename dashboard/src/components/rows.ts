/** The rows of the table of trials: from what the page has, or from the service as they are seen. */

import { useEffect, useMemo, useState } from "react";

import type { Job, Trial } from "../api/client";
import { useTrialPages, useWindows, WINDOW } from "../api/plots";
import { factsAt, OK, type Columns, type TrialFacts } from "../charts/columns";
import { isPlain, type Selection } from "../charts/selection";

export type SortColumn = "number" | "time" | "sketch" | "predicted" | "outcome";

export interface Order {
  by: SortColumn;
  falls: boolean;
}

export interface Rows {
  count: number;
  /** Whether there may be more than `count`. */
  hasMore: boolean;
  /** Undefined while it is on its way. */
  row: (index: number) => TrialFacts | undefined;
  /** Which columns the rows can be sorted by. */
  sorts: readonly SortColumn[];
  /** To be told which rows are in sight. */
  see: (first: number, last: number) => void;
  /** Whether only trials that the plots draw are there. */
  isSampled: boolean;
}

const ALL: readonly SortColumn[] = ["number", "time", "sketch", "predicted", "outcome"];
const OF_SERVICE: readonly SortColumn[] = ["number", "time"];

/**
 * The trials of a job that are selected, in an order. Columns that hold all trials, and conditions
 * that only the page knows, are answered here; else by number in windows, or in pages.
 */
export function useRows(
  job: Job,
  columns: Columns,
  selection: Selection,
  isChosen: (index: number) => boolean,
  order: Order,
): Rows {
  const isHere = !columns.is_thinned || !isPlain(selection);
  const isSorted = order.by !== "number" || !!selection.sketch || !!selection.outcome;
  const here = useRowsHere(columns, isChosen, order, isHere);
  const windows = useRowsByNumber(job, columns, selection, order, !isHere && !isSorted);
  const pages = useRowsInPages(job, selection, order, !isHere && isSorted);
  return isHere ? here : isSorted ? pages : windows;
}

function useRowsHere(
  columns: Columns,
  isChosen: (index: number) => boolean,
  order: Order,
  isWanted: boolean,
): Rows {
  const places = useMemo(() => {
    if (!isWanted) return [];
    const keys = columns.number.map((_, index) => keyAt(columns, index, order.by));
    const sign = order.falls ? -1 : 1;
    return [...columns.number.keys()]
      .filter(isChosen)
      .sort((a, b) => sign * compare(keys[a] ?? 0, keys[b] ?? 0) || a - b);
  }, [columns, isChosen, order, isWanted]);
  return {
    count: places.length,
    hasMore: false,
    row: (index) => factsAt(columns, places[index] ?? -1),
    sorts: ALL,
    see: ignore,
    isSampled: columns.is_thinned,
  };
}

function useRowsByNumber(
  job: Job,
  columns: Columns,
  { trials }: Selection,
  order: Order,
  isWanted: boolean,
): Rows {
  const [seen, setSeen] = useState<readonly number[]>([]);
  const greatest = columns.number.at(-1) ?? -1;
  const first = Math.max(0, trials?.[0] ?? 0);
  const last = Math.min(greatest, trials?.[1] ?? greatest);
  const numberAt = (index: number) => (order.falls ? last - index : first + index);
  const found = useWindows(job, isWanted ? seen : []);
  const facts = useMemo(
    () =>
      new Map(
        found.flatMap((window) =>
          window ? window.number.map((number, at) => [number, factsAt(window, at)] as const) : [],
        ),
      ),
    [found],
  );
  return {
    count: Math.max(0, last - first + 1),
    hasMore: false,
    row: (index) => facts.get(numberAt(index)),
    sorts: OF_SERVICE,
    see: (from, to) => {
      const ends = [numberAt(from), numberAt(to)].sort((a, b) => a - b);
      const low = Math.floor((ends[0] ?? 0) / WINDOW);
      const high = Math.floor((ends[1] ?? 0) / WINDOW);
      const wanted = Array.from({ length: high - low + 1 }, (_, index) => low + index);
      setSeen((before) => (before.join() === wanted.join() ? before : wanted));
    },
    isSampled: false,
  };
}

function useRowsInPages(job: Job, selection: Selection, order: Order, isWanted: boolean): Rows {
  const sort = order.by === "time" ? "best_secs" : "number";
  const query = useTrialPages(
    job,
    {
      sort: order.falls ? `-${sort}` : sort,
      sketch: selection.sketch,
      outcome: selection.outcome,
      from_number: selection.trials?.[0],
      to_number: selection.trials?.[1],
    },
    isWanted,
  );
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const [lastSeen, setLastSeen] = useState(0);
  const found = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const isShort = isWanted && lastSeen > found.length - WINDOW / 2;
  useEffect(() => {
    if (isShort && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isShort, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return {
    count: found.length,
    hasMore: hasNextPage,
    row: (index) => {
      const trial = found[index];
      return trial && factsOf(trial);
    },
    sorts: OF_SERVICE,
    see: (_, last) => {
      setLastSeen(last);
    },
    isSampled: false,
  };
}

function factsOf(trial: Trial): TrialFacts {
  return {
    number: trial.number,
    best_secs: trial.error === null ? Math.min(...trial.run_secs) : null,
    predicted: trial.predicted,
    sketch: trial.sketch,
    outcome: trial.error ?? OK,
  };
}

function keyAt(columns: Columns, index: number, by: SortColumn): number | string {
  const facts = factsAt(columns, index);
  switch (by) {
    case "number":
      return facts?.number ?? 0;
    case "time":
      return facts?.best_secs ?? Infinity;
    case "predicted":
      return facts?.predicted ?? -Infinity;
    case "sketch":
      return facts?.sketch ?? "";
    case "outcome":
      return facts?.outcome ?? "";
  }
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function ignore() {
  // What is here needs no fetching.
}
