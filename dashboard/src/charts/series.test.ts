import { expect, test } from "vitest";

import type { Trial } from "../api/client";
import { bestSoFar, bySketch, failures } from "./series";

function trial(number: number, sketch: string, secs: number | null): Trial {
  return {
    number,
    sketch,
    trace: {},
    error: secs === null ? "timeout" : null,
    message: secs === null ? `trial ${number}` : "",
    run_secs: secs === null ? [] : [secs * 2, secs],
    max_error: 0,
    build_secs: 0,
    check_secs: 0,
    time_secs: 0,
    worker: "w",
    predicted: null,
    created_at: "2026-01-01T00:00:00Z",
  };
}

const TRIALS = [trial(0, "a", null), trial(1, "b", 3), trial(2, "a", 5), trial(3, "b", 2)];

test("the best so far never rises, and failures do not count", () => {
  expect(bestSoFar(TRIALS)).toEqual([null, 3, 3, 2]);
});

test("each trial is a dot of its own sketch only", () => {
  expect(bySketch(TRIALS)).toEqual([
    { name: "a", secs: [null, null, 5, null] },
    { name: "b", secs: [null, 3, null, 2] },
  ]);
});

test("rare sketches share a colour", () => {
  const many = Array.from({ length: 10 }, (_, n) => trial(n, `s${n}`, n + 1));
  const found = bySketch([...many, ...many]);
  expect(found).toHaveLength(8);
  expect(found.at(-1)?.secs.filter((s) => s !== null)).toHaveLength(6);
});

test("failures are counted by kind, with the first of each", () => {
  const found = failures([...TRIALS, trial(9, "a", null)]);
  expect(found.map((f) => [f.kind, f.count, f.first.number])).toEqual([["timeout", 2, 0]]);
});
