import type { Model } from "../../api/client";
import { COLORS, colorOf } from "../../components/colors";

type Task = Model["tasks"][number];

export interface Part {
  label: string;
  share: number;
  color: string;
  jobId: string | null;
}

const REST = "#8b95a3";

/** The operators and the shape of a task. */
export function taskLabel(task: Pick<Task, "operators" | "shape">): string {
  return task.shape ? `${task.operators} ${task.shape}` : task.operators;
}

/** The parts of the latency, the largest first; those that have no colour of their own are one. */
export function shares(tasks: readonly Task[]): Part[] {
  const timed = tasks
    .filter((task) => task.share !== null)
    .sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  const parts = timed.slice(0, COLORS.length).map((task, place) => ({
    label: `${task.number}: ${taskLabel(task)}`,
    share: task.share ?? 0,
    color: colorOf(place),
    jobId: task.job_id,
  }));
  const others = timed.slice(COLORS.length);
  if (!others.length) return parts;
  const share = others.reduce((sum, task) => sum + (task.share ?? 0), 0);
  return [...parts, { label: `${others.length} other tasks`, share, color: REST, jobId: null }];
}
