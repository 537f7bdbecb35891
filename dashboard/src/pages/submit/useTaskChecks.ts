import { ApiError } from "../../api/client";
import { useChecks, type WorkloadCheck } from "../../api/lists";
import { usePaused } from "../../components/usePaused";
import { isEmpty, mistakeOf, workloadOf, type Mistake, type TaskDraft } from "./draft";

const PAUSE_MS = 350;

/** What the service says of a task as it is written now. */
export type TaskCheck =
  | { state: "empty" | "reading" }
  | { state: "legal"; check: WorkloadCheck }
  | { state: "refused"; mistake: Mistake }
  | { state: "unchecked"; error: Error };

/** The check of each task, in their order; the service reads a text once it stops changing. */
export function useTaskChecks(tasks: readonly TaskDraft[], target: string): TaskCheck[] {
  const now = tasks.map((task) => ({ workload: workloadOf(task), target }));
  const settled = usePaused(now, PAUSE_MS);
  const isWhole = tasks.map((task) => !isEmpty(task) && target.trim() !== "");
  const queries = useChecks(settled, isWhole);
  return tasks.map((_, place): TaskCheck => {
    if (!isWhole[place]) return { state: "empty" };
    const query = queries[place];
    const isCurrent = JSON.stringify(settled[place]) === JSON.stringify(now[place]);
    if (!query || !isCurrent || query.isPending) return { state: "reading" };
    if (query.data) return { state: "legal", check: query.data };
    const mistake = mistakeOf(query.error);
    return mistake ? { state: "refused", mistake } : { state: "unchecked", error: query.error };
  });
}

function hasFailed(check: TaskCheck): boolean {
  if (check.state !== "unchecked") return false;
  return check.error instanceof ApiError && check.error.problem.status === 500;
}

/**
 * Why a job cannot be started as it is written; null if it can. A task may be submitted without a
 * check if the service did not answer, but not if the check itself failed: so would the job.
 */
export function obstacleOf(checks: readonly TaskCheck[], hasValidFields: boolean): string | null {
  const states = new Set(checks.map(({ state }) => state));
  const which = checks.length > 1 ? "a task" : "the task";
  if (states.has("empty")) return `Enter ${which} and a target first.`;
  if (states.has("refused")) return `Correct ${which} first: it is invalid.`;
  if (checks.some(hasFailed)) return `The service failed to check ${which}: see its error.`;
  if (!hasValidFields) return "Correct the marked fields first.";
  if (states.has("reading")) return "Checking the program…";
  return null;
}
