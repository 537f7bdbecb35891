/** The rows of the table of trials: from what the page has, or from the service as they are seen. */

import { useMemo, useState } from "react";

import type { Job } from "../api/client";
import { useSelected, WINDOW, type Asked } from "../api/plots";
import { factsAt, type Columns, type TrialFacts } from "../charts/columns";
import { isByDecision, type Selection } from "../charts/selection";

export type SortColumn = "number" | "time" | "sketch" | "predicted" | "outcome";

export interface Order {
  by: SortColumn;
  falls: boolean;
}

export interface Rows {
  /** Undefined while it is not known. */
  count: number | undefined;
  /** Undefined while it is on its way. */
  row: (index: number) => TrialFacts | undefined;
  /** To be told which rows are in sight. */
  see: (first: number, last: number) => void;
  /** Whether only trials that the plots draw are there. */
  isSampled: boolean;
}

/**
 * The trials of a job that are selected, in an order. Columns that hold all trials, and decisions,
 * of which only the page knows, are answered here; all else by the service, a window at a time.
 */
export function useRows(
  job: Job,
  columns: Columns,
  selection: Selection,
  isChosen: (index: number) => boolean,
  order: Order,
): Rows {
  const isHere = !columns.is_thinned || isByDecision(selection);
  const here = useRowsHere(columns, isChosen, order, isHere);
  const found = useRowsOfService(job, selection, order, !isHere);
  return isHere ? here : found;
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
    row: (index) => factsAt(columns, places[index] ?? -1),
    see: ignore,
    isSampled: columns.is_thinned,
  };
}

function useRowsOfService(job: Job, selection: Selection, order: Order, isWanted: boolean): Rows {
  const [seen, setSeen] = useState<readonly number[]>([0]);
  const asked = useMemo(() => askedFor(selection, order), [selection, order]);
  const { count, parts } = useSelected(job, asked, seen, isWanted);
  return {
    count,
    row: (index) => {
      const part = parts[seen.indexOf(Math.floor(index / WINDOW))];
      return part && factsAt(part, index % WINDOW);
    },
    see: (from, to) => {
      const low = Math.floor(from / WINDOW);
      const high = Math.floor(to / WINDOW);
      const wanted = Array.from({ length: high - low + 1 }, (_, index) => low + index);
      setSeen((before) => (before.join() === wanted.join() ? before : wanted));
    },
    isSampled: false,
  };
}

function askedFor(selection: Selection, { by, falls }: Order): Asked {
  const { trials, time, place, speed, sketch, outcome } = selection;
  const sort = by === "time" ? "best_secs" : by;
  return {
    sort: falls ? `-${sort}` : sort,
    ...(trials && {
      from_number: Math.max(0, Math.ceil(trials[0])),
      to_number: Math.max(0, Math.floor(trials[1])),
    }),
    ...(time && { from_secs: time[0], to_secs: time[1] }),
    ...(place && { from_predicted_percentile: place[0], to_predicted_percentile: place[1] }),
    ...(speed && { from_relative_speed: speed[0], to_relative_speed: speed[1] }),
    ...(sketch !== undefined && { sketch }),
    ...(outcome !== undefined && { outcome: outcome as NonNullable<Asked["outcome"]> }),
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
