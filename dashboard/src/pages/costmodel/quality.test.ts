import { expect, test } from "vitest";

import type { CostModel } from "../../api/client";
import { byLabel, bySplit, byTask, figure, newestOfStore } from "./quality";

function model(version: number, by_task: Record<string, unknown>, job_id: string | null = null) {
  return { label: "cpu/x", version, job_id, quality: { by_task } } as unknown as CostModel;
}

const OLD = model(1, { a: { pairwise_accuracy: 0.7 } });
const NEW = model(3, {
  a: { pairwise_accuracy: 0.8, top1: 0.9, trials_saved: 12 },
  b: { pairwise_accuracy: 0.6 },
});
const OF_JOB = model(2, {}, "job");

test("versions are in order, by kind of target", () => {
  expect([...byLabel([NEW, OF_JOB, OLD])]).toEqual([["cpu/x", [OLD, OF_JOB, NEW]]]);
});

test("the worst task is first, and drift is against the version before", () => {
  const found = byTask(NEW, OLD);
  expect(found.map(({ task }) => task)).toEqual(["b", "a"]);
  expect(found[0]?.drift).toBeNull();
  expect(found[1]).toMatchObject({ top1: 0.9, saved: 12 });
  expect(found[1]?.drift).toBeCloseTo(0.1);
});

test("splits come in order, those that were judged", () => {
  const judged = { operator: { pairwise_accuracy: 0.8, top5: 1 }, shape: { top1: 0.9 } };
  const model = { quality: { by_split: judged } } as unknown as CostModel;
  expect(bySplit(model)).toEqual([
    { heldOut: "a shape of a known operator", pairwise: null, top1: 0.9, top5: null },
    { heldOut: "an operator", pairwise: 0.8, top1: null, top5: 1 },
  ]);
  expect(bySplit(OLD)).toEqual([]);
});

test("models of jobs are not of the store", () => {
  expect(newestOfStore([OLD, OF_JOB, NEW])).toEqual([NEW, OLD]);
  expect(newestOfStore([OF_JOB])).toEqual([undefined, undefined]);
});

test("what is no number is no figure", () => {
  expect(figure({ a: "1" }, "a")).toBeNull();
  expect(figure(undefined, "a")).toBeNull();
});
