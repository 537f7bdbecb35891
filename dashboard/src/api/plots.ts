/** What the page of a job asks for: columns that grow, figures, decisions, and rows of its table. */

import { keepPreviousData, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { replaceFrom, type Columns } from "../charts/columns";
import { get, type Job } from "./client";
import type { components, paths } from "./schema";

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

/** Which of all trials the service is asked for, and in which order. */
export type Asked = Omit<
  NonNullable<paths["/api/v1/jobs/{job_id}/selection"]["get"]["parameters"]["query"]>,
  "offset" | "limit"
>;

export interface Found {
  /** Of all that meet the conditions; undefined while it is not known. */
  count: number | undefined;
  /** Parts of them, each of `WINDOW`, as they were asked for; undefined while on their way. */
  parts: (Columns | undefined)[];
}

/** How many of all trials meet conditions, and some windows of them. */
export function useSelected(
  job: Job,
  asked: Asked,
  windows: readonly number[],
  isWanted: boolean,
): Found {
  const client = useQueryClient();
  const part = (offset: number, limit: number) => ({
    queryKey: ["selection", job.id, asked, offset, limit],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      get<Columns>(`/jobs/${job.id}/selection`, { ...asked, offset, limit }, signal),
    enabled: isWanted,
    structuralSharing: false,
  });
  const counted = useQuery({ ...part(0, 1), placeholderData: keepPreviousData });
  const parts = useQueries({
    queries: (isWanted ? windows : []).map((window) => part(window * WINDOW, WINDOW)),
    combine: (results) => results.map((result) => result.data),
  });
  // By number, trials come at an end; any other order is over all of them, and looked at less often.
  const moment = asked.sort?.endsWith("number") ? job.num_measured : step(job);
  const seen = useRef(moment);
  useEffect(() => {
    if (seen.current === moment) return;
    seen.current = moment;
    const queryKey = ["selection", job.id];
    void client.invalidateQueries({ queryKey }, { cancelRefetch: false });
  }, [client, job.id, moment]);
  return { count: counted.data?.num_trials, parts };
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
