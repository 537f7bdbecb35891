import { expect, test } from "vitest";

import { ago, digits, duration, rate, secs, speedup } from "./format";

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

test("digits keep three of them and never an exponent", () => {
  expect(digits(12345)).toBe("12,345");
  expect(digits(99.96)).toBe("100");
  expect(digits(0.0123)).toBe("0.0123");
});

test("what was not measured has no ratio and no rate", () => {
  expect(speedup(null, 1)).toBe("–");
  expect(rate(2e9, null)).toBe("–");
});

test("a rate is operations over time", () => {
  expect(rate(2 * 512 ** 3, 3e-3)).toBe("89.5 GFLOP/s");
  expect(speedup(3, 0.25)).toBe("12.0×");
});

test("ages are in one unit", () => {
  expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:02:30Z"))).toBe("2 min ago");
  expect(duration(3 * 3600 + 120)).toBe("3 h 2 min");
});
