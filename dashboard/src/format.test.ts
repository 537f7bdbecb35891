import { expect, test } from "vitest";

import {
  ago,
  digits,
  duration,
  interval,
  large,
  percent,
  plural,
  rate,
  secs,
  speedup,
} from "./format";

test.each([
  [1.5, "1.50 s"],
  [0.0123, "12.3 ms"],
  [2.87e-3, "2.87 ms"],
  [4.2e-5, "42.0 µs"],
  [3e-9, "3.00 ns"],
  [null, "–"],
  [Infinity, "–"],
])("%s seconds read %s", (value, text) => {
  expect(secs(value)).toBe(text);
});

test("a count agrees with its noun", () => {
  expect(plural(1, "trial")).toBe("1 trial");
  expect(plural(0, "trial")).toBe("0 trials");
  expect(plural(2000, "trial")).toBe("2,000 trials");
  expect(plural(2, "sketch", "sketches")).toBe("2 sketches");
});

test("digits keep three of them and never an exponent", () => {
  expect(digits(12345)).toBe("12,345");
  expect(digits(99.96)).toBe("100");
  expect(digits(0.0123)).toBe("0.0123");
});

test("what was not measured has no ratio and no rate", () => {
  expect(speedup(null, 1)).toBe("–");
  expect(rate(2e9, null, "float32")).toBe("–");
});

test("a rate is operations over time", () => {
  expect(rate(2 * 512 ** 3, 3e-3, "bfloat16")).toBe("89.5 GFLOP/s");
  expect(rate(2 * 512 ** 3, 3e-3, "int8")).toBe("89.5 GOP/s");
  expect(rate(2 * 512 ** 3, 3e-3, null)).toBe("89.5 GFLOP/s");
  expect(speedup(3, 0.25)).toBe("12.0×");
});

test("ages are in one unit", () => {
  expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:02:30Z"))).toBe("2 min ago");
  expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T03:02:30Z"))).toBe("3 h ago");
  expect(duration(3 * 3600 + 120)).toBe("3 h 2 min");
});

test("a share is a percentage, and nothing is a dash", () => {
  expect(percent(0.1234)).toBe("12.3 %");
  expect(percent(1, 0)).toBe("100 %");
  expect(percent(null)).toBe("–");
});

test("large numbers have a prefix, and huge ones an exponent", () => {
  expect(large(0, "B")).toBe("0 B");
  expect(large(999, "B")).toBe("999 B");
  expect(large(268435456, "FLOP")).toBe("268 MFLOP");
  expect(large(1.5e12, "")).toBe("1.50 T");
  expect(large(3.2e21, "")).toBe("3.2e21");
});

test("an interval is between two times", () => {
  expect(interval([1e-3, 2e-3])).toBe("1.00 ms to 2.00 ms");
  expect(interval(null)).toBe("");
});
