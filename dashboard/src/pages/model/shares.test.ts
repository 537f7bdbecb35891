import { expect, test } from "vitest";

import type { Model } from "../../api/client";
import { shares, taskLabel } from "./shares";

type Task = Model["tasks"][number];

const task = (number: number, share: number | null) =>
  ({ number, operators: "relu", shape: "4 x 4", share, job_id: null }) as Task;

test("the largest part comes first, and tasks without a time have none", () => {
  const parts = shares([task(0, 0.2), task(1, null), task(2, 0.8)]);
  expect(parts.map(({ label }) => label)).toEqual(["2: relu 4 x 4", "0: relu 4 x 4"]);
});

test("many small tasks are one part", () => {
  const parts = shares(Array.from({ length: 12 }, (_, number) => task(number, 1 / 12)));
  expect(parts).toHaveLength(9);
  expect(parts.at(-1)?.label).toBe("4 other tasks");
  expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
});

test("a task without a shape is called by its operators", () => {
  expect(taskLabel({ operators: "copy", shape: null })).toBe("copy");
});
