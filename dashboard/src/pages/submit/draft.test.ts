import { expect, test } from "vitest";

import { ApiError } from "../../api/client";
import { isEmpty, mistakeOf, newTask, splitAt, workloadOf } from "./draft";

test("a task is an operator or a script, and not both", () => {
  const task = newTask(0);
  expect(Object.keys(workloadOf(task))).toEqual(["operator"]);
  expect(Object.keys(workloadOf({ ...task, form: "script" }))).toEqual(["script"]);
  expect(isEmpty({ ...task, operator: "  " })).toBe(true);
});

test("a mistake has its place, and other errors are none", () => {
  const errors = [{ detail: "expected )", pointer: "/workload/script", line: 3, column: 5 }];
  const problem = { type: "", title: "Unprocessable", status: 422, detail: "all", errors };
  expect(mistakeOf(new ApiError(problem))).toMatchObject({ line: 3, column: 5 });
  expect(mistakeOf(new ApiError({ ...problem, errors: [] }))?.detail).toBe("all");
  expect(mistakeOf(new ApiError({ ...problem, status: 500 }))).toBeNull();
  expect(mistakeOf(new TypeError("gone"))).toBeNull();
});

test("a column is marked, also one past the end of its line", () => {
  expect(splitAt("abc", 2)).toEqual(["a", "b", "c"]);
  expect(splitAt("abc", 9)).toEqual(["abc", " ", ""]);
  expect(splitAt("", null)).toEqual(["", " ", ""]);
});
