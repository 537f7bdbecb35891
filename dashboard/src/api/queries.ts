/** What the pages ask for, each under a key of its own. */

import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";

import {
  get,
  type CostModel,
  type Job,
  type Page,
  type Trial,
  type TrialCode,
  type Worker,
} from "./client";
import type { components } from "./schema";
import { useSession } from "./session";

const REFRESH_MS = 3000;
const PAGE_LIMIT = 500;

export function useJobs(state: string) {
  return useInfiniteQuery({
    queryKey: ["jobs", state],
    queryFn: ({ pageParam, signal }) =>
      get<Page<Job>>("/jobs", { state, cursor: pageParam, limit: 50 }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  });
}

export function useJob(id: string) {
  return useQuery({
    queryKey: ["job", id],
    queryFn: ({ signal }) => get<Job>(`/jobs/${id}`, {}, signal),
  });
}

/** All trials of a job; `measured` asks again when there are more of them. */
export function useTrials(id: string, measured: number) {
  return useQuery({
    queryKey: ["trials", id, measured],
    queryFn: async ({ signal }) => {
      const found: Trial[] = [];
      let cursor: string | null | undefined;
      do {
        const page: Page<Trial> = await get(
          `/jobs/${id}/trials`,
          { limit: PAGE_LIMIT, cursor },
          signal,
        );
        found.push(...page.items);
        cursor = page.next_cursor;
      } while (cursor);
      return found;
    },
    placeholderData: keepPreviousData,
  });
}

export function useTrial(id: string, number: string) {
  return useQuery({
    queryKey: ["trial", id, number],
    queryFn: ({ signal }) => get<Trial>(`/jobs/${id}/trials/${number}`, {}, signal),
  });
}

/** The code of a trial, which never changes while the service runs. */
export function useTrialCode(id: string, number: string) {
  return useQuery({
    queryKey: ["code", id, number],
    queryFn: ({ signal }) => get<TrialCode>(`/jobs/${id}/trials/${number}/code`, {}, signal),
    staleTime: Infinity,
  });
}

export function useWorkers() {
  return useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => get<Page<Worker>>("/workers", {}, signal),
    refetchInterval: REFRESH_MS,
  });
}

export function useModels() {
  return useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => get<Page<CostModel>>("/cost-models", {}, signal),
    refetchInterval: 10 * REFRESH_MS,
  });
}

type CallerRead = components["schemas"]["CallerRead"];

/** Whose token this tab keeps, and what it may do; without one a service that answers lets all. */
export function useCaller() {
  const { token } = useSession();
  const { data } = useQuery({
    queryKey: ["caller", token],
    queryFn: ({ signal }) => get<CallerRead>("/caller", {}, signal),
    enabled: token !== null,
    staleTime: Infinity,
  });
  const { name = null, scope } = data ?? {};
  return { name, scope, maySubmit: scope !== "read" };
}
