import { expect, test } from "vitest";

import type { Decisions } from "../api/plots";
import type { Columns } from "./columns";
import { chosenOf, chosenRowsOf, knownOf } from "./linked";
import { NOTHING, withCondition } from "./selection";

const COLUMNS: Columns = {
  number: [0, 1, 2, 3],
  secs: [0, 1, 2, 3],
  best_secs: [4e-3, null, 2e-3, 1e-3],
  predicted: [null, 0.1, 0.2, 0.3],
  predicted_percentile: [null, 0, 0.5, 1],
  relative_speed: [null, 0, 0.5, 1],
  round: [0, 1, 1, 1],
  sketch: [0, 1, 1, 1],
  outcome: [0, 1, 0, 0],
  sketches: ["default", "tiled"],
  outcomes: ["ok", "crash"],
  num_trials: 4,
  is_thinned: false,
};
// Another choice of trials than the columns: trial 9 is in no column.
const DECISIONS: Decisions = {
  sketch: "tiled",
  sketches: ["tiled"],
  decisions: [{ name: "unroll", values: [1, 4], importance: 0.5 }],
  rows: [[1], [4], [4]],
  number: [1, 3, 9],
  best_secs: [null, 1e-3, 3e-3],
  num_trials: 5,
  is_sampled: true,
};
const KNOWN = knownOf(COLUMNS, DECISIONS);

function chosen(isChosen: (index: number) => boolean, length: number): boolean[] {
  return Array.from({ length }, (_, index) => isChosen(index));
}

test("with no condition, everything is selected everywhere", () => {
  expect(chosen(chosenOf(COLUMNS, KNOWN, NOTHING), 4)).toEqual([true, true, true, true]);
});

test("a decision selects the dots of the trials that decided so", () => {
  const selection = withCondition(NOTHING, "d.unroll", [4, 4]);
  expect(chosen(chosenOf(COLUMNS, KNOWN, selection), 4)).toEqual([false, false, false, true]);
  const rows = chosenRowsOf(DECISIONS, KNOWN, selection);
  expect(chosen(rows, 3)).toEqual([false, true, true]);
});

test("a brush on times, numbers or outcomes selects the lines of the same trials", () => {
  const rows = (selection: typeof NOTHING) => chosen(chosenRowsOf(DECISIONS, KNOWN, selection), 3);
  expect(rows(withCondition(NOTHING, "time", [0, 2e-3]))).toEqual([false, true, false]);
  expect(rows(withCondition(NOTHING, "trials", [2, 9]))).toEqual([false, true, true]);
  expect(rows(withCondition(NOTHING, "outcome", "crash"))).toEqual([true, false, false]);
  expect(rows(withCondition(NOTHING, "sketch", "default"))).toEqual([false, false, false]);
});

test("a brush on predictions selects by the place in the round", () => {
  const selection = withCondition(NOTHING, "place", [0.5, 1]);
  expect(chosen(chosenOf(COLUMNS, KNOWN, selection), 4)).toEqual([false, false, true, true]);
});
