/** A job, or a group of them, as it is being written. */

import { ApiError, type JobCreate } from "../../api/client";
import type { WorkloadRequest } from "../../api/lists";

export interface TaskDraft {
  id: number;
  form: "operator" | "script";
  operator: string;
  script: string;
  weight: number;
}

export interface Options {
  target: string;
  max_trials: number;
  max_secs: number | null;
  plateau: number | null;
  priority: number;
  seed: number;
  strategy: NonNullable<JobCreate["strategy"]>;
  warm_start: boolean;
  /** Hours in which the jobs are measured; empty for any time. */
  window: string;
  /** The address to notify at the end, and the secret that signs; empty for none. */
  webhook_url: string;
  webhook_secret: string;
}

export const STRATEGIES: readonly Options["strategy"][] = [
  "evolutionary",
  "annealing",
  "local",
  "random",
  "exhaustive",
];

export const NO_OPTIONS: Options = {
  target: "cpu",
  max_trials: 200,
  max_secs: null,
  plateau: null,
  priority: 0,
  seed: 0,
  strategy: "evolutionary",
  warm_start: true,
  window: "",
  webhook_url: "",
  webhook_secret: "",
};

/** The options as fields of a request. */
export function fieldsOf({ window, webhook_url, webhook_secret, ...options }: Options) {
  const webhook = webhook_url ? { url: webhook_url, secret: webhook_secret } : null;
  return { ...options, window: window || null, webhook };
}

/** A new random secret of a webhook, in the form of Standard Webhooks. */
export function newSecret(): string {
  const random = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...random))}`;
}

export const EXAMPLES = [
  "matmul:512,512,512:float32",
  "conv2d:1,64,56,56,64,3,1,1",
  "batch_matmul:8,128,128,64",
  "softmax:1024,1024",
  "layer_norm:512,768",
  "attention:1,8,128,128,64",
] as const;

const SCRIPT = `@T.prim_func
def scale_add(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32")):
    for i, j in T.grid(1024, 1024):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
`;

/** A task to begin with. */
export function newTask(id: number): TaskDraft {
  return { id, form: "operator", operator: EXAMPLES[0], script: SCRIPT, weight: 1 };
}

/** The `workload` of a request. */
export function workloadOf(task: TaskDraft): WorkloadRequest {
  return task.form === "operator" ? { operator: task.operator } : { script: task.script };
}

/** Whether there is anything to read. */
export function isEmpty(task: TaskDraft): boolean {
  return !(task.form === "operator" ? task.operator : task.script).trim();
}

export interface Mistake {
  detail: string;
  line: number | null;
  column: number | null;
  /** The part of the request that it is in. */
  pointer: string;
}

/** What is wrong with a request, as the service says it; nothing if it did not say. */
export function mistakeOf(error: Error | null): Mistake | null {
  if (!(error instanceof ApiError) || error.problem.status !== 422) return null;
  const first = error.problem.errors?.[0];
  return {
    detail: first?.detail ?? error.problem.detail ?? error.problem.title,
    line: first?.line ?? null,
    column: first?.column ?? null,
    pointer: first?.pointer ?? "",
  };
}

/** A line of a script before, at and after a column that counts from 1. */
export function splitAt(line: string, column: number | null): [string, string, string] {
  const place = Math.max(0, Math.min((column ?? 1) - 1, line.length));
  return [line.slice(0, place), line.slice(place, place + 1) || " ", line.slice(place + 1)];
}
