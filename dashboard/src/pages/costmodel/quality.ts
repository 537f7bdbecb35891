/** Quality of cost models on held-out tasks, and its drift between versions. */

import type { CostModel } from "../../api/client";

export interface TaskQuality {
  task: string;
  pairwise: number | null;
  top1: number | null;
  saved: number | null;
  /** How much the pairwise accuracy changed since the version before. */
  drift: number | null;
}

/** The versions of each kind of target, the oldest first. */
export function byLabel(models: readonly CostModel[]): Map<string, CostModel[]> {
  const found = new Map<string, CostModel[]>();
  for (const model of models.toSorted((a, b) => a.version - b.version)) {
    found.set(model.label, [...(found.get(model.label) ?? []), model]);
  }
  return found;
}

/** A figure of a model's quality, if it has that. */
export function figure(quality: unknown, name: string): number | null {
  const value = (quality as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === "number" ? value : null;
}

/** The quality on each held-out task, the worst first. */
export function byTask(model: CostModel, before: CostModel | undefined): TaskQuality[] {
  const earlier = tasksOf(before);
  return Object.entries(tasksOf(model))
    .map(([task, quality]) => {
      const pairwise = figure(quality, "pairwise_accuracy");
      const was = figure(earlier[task], "pairwise_accuracy");
      return {
        task,
        pairwise,
        top1: figure(quality, "top1"),
        saved: figure(quality, "trials_saved"),
        drift: pairwise === null || was === null ? null : pairwise - was,
      };
    })
    .sort((a, b) => (a.pairwise ?? 0) - (b.pairwise ?? 0));
}

/** What the judged models had not been trained on, in words. */
const SPLITS = [
  ["shape", "a shape of a known operator"],
  ["operator", "an operator"],
  ["cpu", "this kind of target"],
] as const;

export interface SplitQuality {
  heldOut: string;
  pairwise: number | null;
  top1: number | null;
  top5: number | null;
}

/** The mean quality of models that lacked the shape, the operator or the kind of target. */
export function bySplit(model: CostModel): SplitQuality[] {
  const found = (model.quality.by_split ?? {}) as Record<string, unknown>;
  return SPLITS.filter(([name]) => name in found).map(([name, heldOut]) => ({
    heldOut,
    pairwise: figure(found[name], "pairwise_accuracy"),
    top1: figure(found[name], "top1"),
    top5: figure(found[name], "top5"),
  }));
}

function tasksOf(model: CostModel | undefined): Record<string, unknown> {
  return (model?.quality.by_task ?? {}) as Record<string, unknown>;
}

/** The newest model of the whole store and the one before it, if there are any. */
export function newestOfStore(models: readonly CostModel[]): (CostModel | undefined)[] {
  const ofStore = models.filter((model) => model.job_id === null);
  return [ofStore.at(-1), ofStore.at(-2)];
}
