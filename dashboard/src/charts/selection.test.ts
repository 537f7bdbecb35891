import { describe, expect, test } from "vitest";

import {
  conditions,
  isByDecision,
  isSelected,
  NOTHING,
  readSelection,
  withCondition,
  writeSelection,
  type Condition,
  type Selection,
  type Span,
} from "./selection";

const TRIAL = {
  number: 7,
  best_secs: 2e-3,
  predicted_percentile: 0.5,
  relative_speed: null,
  sketch: "tiled",
  outcome: "ok",
  decision: (name: string) => (name === "unroll" ? 4 : undefined),
};

function selection(...pairs: [Condition, Span | string][]): Selection {
  return pairs.reduce((made, [name, value]) => withCondition(made, name, value), NOTHING);
}

describe("a trial is selected", () => {
  test("by no condition", () => {
    expect(isSelected(TRIAL, NOTHING)).toBe(true);
  });

  test.each<[Condition, Span | string, boolean]>([
    ["trials", [7, 9], true],
    ["trials", [8, 9], false],
    ["time", [1e-3, 2e-3], true],
    ["time", [1e-3, 1.9e-3], false],
    ["place", [0.5, 1], true],
    ["speed", [0, 1], false],
    ["sketch", "tiled", true],
    ["sketch", "packed", false],
    ["outcome", "timeout", false],
    ["d.unroll", [4, 8], true],
    ["d.unroll", [8, 16], false],
    ["d.tile", [0, 100], false],
  ])("by %s %j: %j", (name, value, expected) => {
    expect(isSelected(TRIAL, selection([name, value]))).toBe(expected);
  });

  test("if all conditions hold", () => {
    expect(isSelected(TRIAL, selection(["trials", [0, 9]], ["sketch", "tiled"]))).toBe(true);
    expect(isSelected(TRIAL, selection(["trials", [0, 9]], ["sketch", "packed"]))).toBe(false);
  });
});

const ALL = selection(
  ["trials", [3, 9]],
  ["time", [1e-6, 2.5e-3]],
  ["place", [0, 0.5]],
  ["sketch", "packed_right whole"],
  ["outcome", "timeout"],
  ["d.i of C, part 1", [4, 32]],
);

test("a selection stands in the address as it was, beside what else is there", () => {
  const written = writeSelection(ALL, new URLSearchParams("scale=linear&sketch=old"));
  expect(written.get("scale")).toBe("linear");
  expect(readSelection(new URLSearchParams(written.toString()))).toEqual(ALL);
});

test("a condition that is dropped is in the address no more", () => {
  const without = withCondition(withCondition(ALL, "trials", undefined), "outcome", undefined);
  const written = writeSelection(without, writeSelection(ALL, new URLSearchParams()));
  expect(conditions(readSelection(written))).toEqual(conditions(without));
  expect(conditions(without)).not.toContain("trials");
});

test.each(["trials=", "trials=5", "trials=9~3", "trials=a~b", "trials=1~2~3", "other=1~2"])(
  "an address that means nothing selects everything: %s",
  (text) => {
    expect(readSelection(new URLSearchParams(text))).toEqual(NOTHING);
  },
);

test("the service selects by all but decisions", () => {
  expect(isByDecision(selection(["trials", [0, 1]], ["time", [0, 1]], ["sketch", "a"]))).toBe(
    false,
  );
  expect(isByDecision(selection(["d.x", [0, 1]]))).toBe(true);
});
