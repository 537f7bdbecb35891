import { expect, test } from "vitest";

import { spread } from "./samples";

test("the quartiles of samples do not depend on their order", () => {
  expect(spread([5, 1, 3, 2, 4])).toEqual({ low: 1, median: 3, high: 5, middle: [2, 4] });
  expect(spread([2])).toEqual({ low: 2, median: 2, high: 2, middle: [2, 2] });
  expect(spread([1, 2]).median).toBe(1.5);
});
