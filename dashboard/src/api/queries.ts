/** What the pages ask for, each under a key of its own. */

import { useQuery } from "@tanstack/react-query";

import {
  get,
  type CostModel,
  type Job,
  type Model,
  type Page,
  type Shapes,
  type Trial,
  type TrialCode,
  type Worker,
} from "./client";
import type { components } from "./schema";
import { useSession } from "./session";

const REFRESH_MS = 3000;

export function useJob(id: string) {
  return useQuery({
    queryKey: ["job", id],
    queryFn: ({ signal }) => get<Job>(`/jobs/${id}`, {}, signal),
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

/** A model, read again while its jobs wait or run. */
export function useModel(id: string) {
  return useQuery({
    queryKey: ["model", id],
    queryFn: ({ signal }) => get<Model>(`/models/${id}`, {}, signal),
    refetchInterval: ({ state }) =>
      state.data && !["queued", "running"].includes(state.data.state) ? false : REFRESH_MS,
  });
}

/** A search over ranges, read again until its kernels are chosen. */
export function useShapes(id: string) {
  return useQuery({
    queryKey: ["shapes", id],
    queryFn: ({ signal }) => get<Shapes>(`/shapes/${id}`, {}, signal),
    refetchInterval: ({ state }) =>
      state.data && !["queued", "running"].includes(state.data.state) ? false : REFRESH_MS,
  });
}

export function useWorkers() {
  return useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => get<Page<Worker>>("/workers", {}, signal),
    refetchInterval: REFRESH_MS,
  });
}

export function useCostModels() {
  return useQuery({
    queryKey: ["cost-models"],
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
