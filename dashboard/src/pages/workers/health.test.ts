import { expect, test } from "vitest";

import { verdict } from "./health";

function canary(secs: number[], noise = 0.01) {
  return { at: [], utilisation: [], secs, noise: secs.map(() => noise) };
}

test("a host that is as it was is steady", () => {
  expect(verdict(canary([2, 2.1, 1.9, 2])).kind).toBe("good");
});

test("a worker slower than its median is reported with the ratio", () => {
  expect(verdict(canary([2, 2, 2, 3]))).toEqual({ kind: "warn", text: "1.50× slower than usual" });
});

test("one whose runs differ is noisy", () => {
  expect(verdict(canary([2, 2, 2], 0.25)).text).toBe("noisy: 25 % above its shortest run");
});

test("of few samples nothing is said", () => {
  expect(verdict(canary([])).text).toBe("no canary samples");
  expect(verdict(canary([1, 9])).text).toBe("too few canary samples");
});
