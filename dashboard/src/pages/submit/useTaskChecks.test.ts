import { expect, test } from "vitest";

import { ApiError } from "../../api/client";
import { obstacleOf } from "./useTaskChecks";

test("a failed check stops a job, and a service that does not answer does not", () => {
  const problem = { type: "", title: "Internal Server Error", status: 500, detail: "", errors: [] };
  const of = (error: Error) => obstacleOf([{ state: "unchecked", error }], true);
  expect(of(new ApiError(problem))).toContain("failed to check the task");
  expect(of(new ApiError({ ...problem, status: 503 }))).toBeNull();
  expect(of(new TypeError("gone"))).toBeNull();
});
