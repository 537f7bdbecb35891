import { expect, test } from "vitest";

import { intervals, rangesInWords, signedPercent } from "./sizes";

const time = (M: number, kernel: number) => ({
  sizes: { M },
  kernel,
  run_secs: 1,
  best_secs: 1,
  tuned_secs: null,
  loss: null,
});

test("sizes in a row with one kernel are one interval, and all intervals fill the range", () => {
  const found = intervals([time(1, 0), time(2, 1), time(8, 1), time(64, 0)], "M");
  expect(found.map(({ kernel, low, high }) => [kernel, low, high])).toEqual([
    [0, 1, 1],
    [1, 2, 8],
    [0, 64, 64],
  ]);
  expect(found.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  expect(found.every(({ share }) => share > 0)).toBe(true);
});

test("a single size fills the range", () => {
  expect(intervals([time(7, 2)], "M")).toEqual([{ kernel: 2, low: 7, high: 7, share: 1 }]);
});

test("ranges and losses are said in words", () => {
  expect(rangesInWords({ M: [1, 512], N: [8, 8] })).toBe("M = 1 to 512, N = 8 to 8");
  expect(signedPercent(0.0312)).toBe("+3.1%");
  expect(signedPercent(-0.01)).toBe("−1.0%");
  expect(signedPercent(null)).toBe("–");
});
