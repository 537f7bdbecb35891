import { expect, test } from "vitest";

import { counts, factsAt, improvements, replaceFrom, type Columns } from "./columns";

/** Columns of trials from `first` on, each of a time or a failure; all in one round. */
function columns(first: number, times: (number | null)[], sketches = ["a"]): Columns {
  return {
    number: times.map((_, index) => first + index),
    secs: times.map((_, index) => first + index),
    best_secs: times,
    predicted: times.map((_, index) => index),
    predicted_percentile: times.map((_, index) => index / times.length),
    relative_speed: times.map(() => 1),
    round: times.map(() => 0),
    sketch: times.map((_, index) => index % sketches.length),
    outcome: times.map((secs) => (secs === null ? 1 : 0)),
    sketches,
    outcomes: ["ok", "timeout"],
    num_trials: first + times.length,
    is_thinned: false,
  };
}

test("more trials come after those that are there, and take the place of what is read anew", () => {
  const joined = replaceFrom(columns(0, [5, 4, 3]), 2, columns(2, [2, 1]));
  expect(joined.number).toEqual([0, 1, 2, 3]);
  expect(joined.best_secs).toEqual([5, 4, 2, 1]);
  expect(joined.num_trials).toBe(4);
});

test("a trial that came late stands in its place", () => {
  const early = columns(0, [5, 4]);
  const late = { ...columns(0, [5, 4, 3]), number: [0, 1, 2] };
  expect(replaceFrom({ ...early, number: [0, 2] }, 0, late)).toEqual(late);
});

test("names keep their places when others come first in what is read later", () => {
  const joined = replaceFrom(columns(0, [1, 1], ["a", "b"]), 2, columns(2, [1, 1], ["b", "c"]));
  const names = joined.number.map((_, index) => factsAt(joined, index)?.sketch);
  expect(names).toEqual(["a", "b", "b", "c"]);
  expect(joined.sketches).toEqual(["a", "b", "c"]);
});

test("the best time falls at improvements only, and failures are none", () => {
  expect(improvements(columns(0, [null, 3, 5, 3, 2, null]))).toEqual([1, 4]);
});

test("names are counted in their order", () => {
  expect(counts([1, 0, 1], ["a", "b", "c"])).toEqual([1, 2, 0]);
});

test("what a trial was is found by its place", () => {
  expect(factsAt(columns(3, [null]), 0)).toMatchObject({ number: 3, outcome: "timeout" });
  expect(factsAt(columns(3, [null]), 1)).toBeUndefined();
});
