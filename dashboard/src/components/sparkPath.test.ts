import { expect, test } from "vitest";

import { sparkPath } from "./sparkPath";

test("it falls from the top left to the bottom right, in steps", () => {
  expect(sparkPath([100, 10, 1], 100, 24)).toBe("M0 2.0H50.0V12.0H100.0V22.0");
});

test("one value is no line, and equal ones are a flat one", () => {
  expect(sparkPath([1], 100, 24)).toBe("");
  expect(sparkPath([3, 3], 100, 24)).toBe("M0 22.0H100.0V22.0");
});
