/** What the lists of the pages ask for. */

import { keepPreviousData, useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";

import {
  get,
  post,
  type Job,
  type ModelSummary,
  type Page,
  type Query,
  type ShapesSummary,
} from "./client";
import type { components } from "./schema";

export type BestSummary = components["schemas"]["BestSummary"];
export type Curve = components["schemas"]["Curve"];
export type Group = components["schemas"]["GroupRead"];
export type Target = components["schemas"]["TargetRead"];
export type Workload = components["schemas"]["WorkloadRead"];
export type WorkloadText = components["schemas"]["WorkloadText"];
export type WorkloadCheck = components["schemas"]["WorkloadCheck"];
export type WorkloadRequest = components["schemas"]["Workload"];

const REFRESH_MS = 3000;
const LIMIT = 50;

/** A list by pages, asked again now and then. */
function useList<Item>(path: string, query: Query) {
  return useInfiniteQuery({
    queryKey: [path, query],
    queryFn: ({ pageParam, signal }) =>
      get<Page<Item>>(path, { ...query, cursor: pageParam, limit: LIMIT }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  });
}

export function useJobList(query: Query) {
  return useList<Job>("/jobs", query);
}

export function useModelList(query: Query) {
  return useList<ModelSummary>("/models", query);
}

export function useShapesList(query: Query) {
  return useList<ShapesSummary>("/shapes", query);
}

export function useBestList(query: Query) {
  return useList<BestSummary>("/schedules", query);
}

export function useTargets() {
  return useQuery({
    queryKey: ["/targets"],
    queryFn: ({ signal }) => get<Page<Target>>("/targets", {}, signal),
    staleTime: 60_000,
  });
}

export function useWorkloads() {
  return useQuery({
    queryKey: ["/workloads"],
    queryFn: ({ signal }) => get<Page<Workload>>("/workloads", { limit: 200 }, signal),
    staleTime: 60_000,
  });
}

export interface Compared {
  job: Job;
  curve: Curve;
}

/** Jobs with their curves, in the order asked for. */
export function useCompared(ids: readonly string[]) {
  return useQueries({
    queries: ids.map((id) => ({
      queryKey: ["compared", id],
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Compared> => {
        const job = await get<Job>(`/jobs/${id}`, {}, signal);
        return { job, curve: await get<Curve>(`/jobs/${id}/curve`, { points: 500 }, signal) };
      },
      refetchInterval: REFRESH_MS,
    })),
  });
}

type CheckRequest = Pick<components["schemas"]["CheckRequest"], "workload" | "target">;

/** What the service reads of workloads and targets; asked once for each pair that is enabled. */
export function useChecks(requests: readonly CheckRequest[], isEnabled: readonly boolean[]) {
  return useQueries({
    queries: requests.map((request, place) => ({
      queryKey: ["check", request],
      queryFn: () => post<WorkloadCheck>("/workloads/check", request),
      enabled: isEnabled[place] ?? false,
      staleTime: Infinity,
      gcTime: 60_000,
      retry: false,
    })),
  });
}
