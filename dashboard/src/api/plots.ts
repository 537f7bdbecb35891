/** What the page of a job asks for: columns that grow, figures, decisions, and rows of its table. */

import {
  keepPreviousData,
  useInfiniteQuery,
  useQueries,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect } from "react";

import { replaceFrom, type Columns } from "../charts/columns";
import { get, type Job, type Page, type Trial } from "./client";
import type { components } from "./schema";

export type Summary = components["schemas"]["Summary"];
export type Decisions = components["schemas"]["Decisions"];

/** About how many trials the plots draw. */
export const MOST_POINTS = 5000;
/** Trials of a round come in any order: what is read anew begins so much before the last. */
const OVERLAP = 256;
export const WINDOW = 200;

const LASTING = { staleTime: Infinity, structuralSharing: false } as const;

/** The columns of a job's trials; when there are more, only those are read and put after them. */
export function useColumns(job: Job) {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["columns", job.id],
    queryFn: async ({ signal, queryKey }) => {
      const known = client.getQueryData<Columns>(queryKey);
      const last = known && known.number.length < 2 * MOST_POINTS ? known.number.at(-1) : undefined;
      const from = Math.max(0, (last ?? 0) - OVERLAP);
      const more = await readColumns(job.id, { points: MOST_POINTS, from_number: from }, signal);
      const joined = known && from ? replaceFrom(known, from, more) : more;
      return { ...joined, num_trials: Math.max(joined.num_trials, job.num_measured) };
    },
    ...LASTING,
  });
  const isBehind = query.data !== undefined && query.data.num_trials < job.num_measured;
  useEffect(() => {
    if (isBehind) void client.invalidateQueries({ queryKey: ["columns", job.id] });
  }, [client, isBehind, job.id, job.num_measured]);
  return query;
}

/** The newest trials of a job with none left out, for what compares those of one round. */
export function useNewest(job: Job, isWanted: boolean) {
  const from = Math.max(0, job.num_measured - MOST_POINTS);
  return useQuery({
    queryKey: ["newest", job.id, step(job)],
    queryFn: ({ signal }) =>
      readColumns(job.id, { points: MOST_POINTS, from_number: from }, signal),
    enabled: isWanted,
    placeholderData: keepPreviousData,
    ...LASTING,
  });
}

export function useSummary(job: Job) {
  return useQuery({
    queryKey: ["summary", job.id, step(job)],
    queryFn: ({ signal }) => get<Summary>(`/jobs/${job.id}/summary`, {}, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
}

export function useDecisions(job: Job, sketch: string | undefined) {
  return useQuery({
    queryKey: ["decisions", job.id, sketch, step(job)],
    queryFn: ({ signal }) => get<Decisions>(`/jobs/${job.id}/decisions`, { sketch }, signal),
    placeholderData: keepPreviousData,
    ...LASTING,
  });
}

/** Windows of the trials by number, such as those of a table in sight. */
export function useWindows(job: Job, windows: readonly number[]): (Columns | undefined)[] {
  return useQueries({
    queries: windows.map((window) => {
      const from = window * WINDOW;
      const isFull = from + WINDOW + OVERLAP < job.num_measured;
      const range = { from_number: from, to_number: from + WINDOW - 1, points: WINDOW };
      return {
        queryKey: ["window", job.id, window, isFull ? 0 : job.num_measured],
        queryFn: ({ signal }: { signal: AbortSignal }) => readColumns(job.id, range, signal),
        ...LASTING,
      };
    }),
    combine: (results) => results.map((result) => result.data),
  });
}

/** Which trials the service is asked for, and in which order. */
export interface TrialQuery {
  sort: "number" | "-number" | "best_secs" | "-best_secs";
  sketch: string | undefined;
  outcome: string | undefined;
  from_number: number | undefined;
  to_number: number | undefined;
}

/** The trials that a query finds, one page after the other. */
export function useTrialPages(job: Job, asked: TrialQuery, isWanted: boolean) {
  return useInfiniteQuery({
    queryKey: ["trials", job.id, asked, step(job)],
    queryFn: ({ pageParam, signal }) =>
      get<Page<Trial>>(
        `/jobs/${job.id}/trials`,
        { ...asked, limit: WINDOW, cursor: pageParam },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    enabled: isWanted,
    placeholderData: keepPreviousData,
    ...LASTING,
  });
}

function readColumns(id: string, range: Record<string, number>, signal: AbortSignal) {
  return get<Columns>(`/jobs/${id}/columns`, range, signal);
}

/**
 * What changes when a job has a fiftieth more trials, or another state. Whatever the service sums up
 * over all trials is asked for so often only: at each event, a long job would cost their square.
 */
function step(job: Job): string {
  return `${job.state} ${Math.floor(50 * Math.log1p(job.num_measured))}`;
}
