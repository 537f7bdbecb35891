import { describe, expect, test } from "vitest";

import { labelled, positions, valuesBetween } from "./axes";
import { clocks, extent, linearTicks, logTicks, tickSecs, wholeTicks, unrepeated } from "./ticks";

describe("ticks", () => {
  test.each([
    [1e-6, 1e-3],
    [2e-3, 0.14],
    [0.0021, 0.0024],
    [1, 1e9],
    [0.9, 1.1],
  ])("on a log axis from %d to %d are few, in order, and within it", (low, high) => {
    const ticks = logTicks(low, high);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThanOrEqual(10);
    expect(ticks).toEqual(ticks.toSorted((a, b) => a - b));
    for (const tick of ticks) expect(tick >= low && tick <= high).toBe(true);
  });

  test.each([10, 30, 60, 600])("that are %d s apart have different times beside them", (step) => {
    const times = clocks([0, step, 2 * step, 3 * step]);
    expect(new Set(times).size).toBe(4);
  });

  test("on a linear axis have equal steps", () => {
    expect(linearTicks(-3, 103, 6)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(linearTicks(5, 5)).toEqual([5]);
  });

  test("are written short", () => {
    expect([0.05, 0.0025, 1e-4, 2, 1.5e-6].map(tickSecs)).toEqual([
      "50 ms",
      "2.5 ms",
      "100 µs",
      "2 s",
      "1.5 µs",
    ]);
  });
});

test("an axis that counts has no ticks between whole numbers", () => {
  expect(wholeTicks(-0.06, 2.06)).toEqual([0, 1, 2]);
  expect(wholeTicks(-0.1, 0.1)).toEqual([0]);
  expect(wholeTicks(-6, 206, 5)).toEqual([0, 50, 100, 150, 200]);
});

test("an axis reaches beyond its values, and has room for a single one", () => {
  expect(extent([null], false)).toBeNull();
  expect(extent([0, -1], true)).toBeNull();
  const [low, high] = extent([1, null, 100], true) ?? [0, 0];
  expect(low < 1 && low > 0 && high > 100).toBe(true);
  const [below, above] = extent([4], false) ?? [0, 0];
  expect(below < 4 && above > 4).toBe(true);
});

test("values of a decision stand at equal distances, and those between two places are found", () => {
  const values = [1, 2, 4, 64];
  expect(positions(values).get(4)).toBeCloseTo(2 / 3);
  expect(positions([5]).get(5)).toBe(0.5);
  expect(valuesBetween(values, [0.3, 1])).toEqual([2, 64]);
  expect(valuesBetween(values, [0.4, 0.5])).toBeNull();
});

test("of many values some are written, the least and the greatest among them", () => {
  const values = Array.from({ length: 50 }, (_, index) => index);
  const shown = labelled(values, 9);
  expect(shown).toHaveLength(9);
  expect([shown[0], shown.at(-1)]).toEqual([0, 49]);
  expect(labelled([1, 2], 9)).toEqual([1, 2]);
});

test("labels of close values appear once", () => {
  expect(unrepeated(["20.5 µs", "20.5 µs", "20.6 µs"])).toEqual(["20.5 µs", "", "20.6 µs"]);
});
