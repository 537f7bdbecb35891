import { expect, test } from "vitest";

import type { Job } from "../../api/client";
import type { Compared } from "../../api/lists";
import {
  bandOf,
  bySeed,
  commonAxis,
  commonKind,
  fastest,
  measured,
  ratioTo,
  valuesAt,
} from "./series";

function job(more: Partial<Job>): Job {
  const known = { workload_key: "k", workload_name: "matmul", target: "cpu", max_trials: 9 };
  return { ...known, strategy: "evolutionary", seed: 0, best_secs: 2, ...more } as Job;
}

function confirmed(more: Partial<Job>): Job {
  return job({ best_kind: "confirmed", ...more });
}

const CURVE = { number: [0, 4, 9], secs: [0.5, 2, 7], best_secs: [8, 4, 4] };
const OTHER = { number: [0, 2], secs: [1, 3], best_secs: [6, 5] };

test("jobs that differ by their seed alone are one group", () => {
  const jobs = [job({ seed: 0 }), job({ seed: 1 }), job({ strategy: "random" })];
  const groups = bySeed(jobs.map((one): Compared => ({ job: one, curve: CURVE })));
  expect(groups.map((group) => group.members.map((m) => m.job.seed))).toEqual([[0, 1], [0]]);
});

test("the common axis has each place at which a curve changes, once", () => {
  expect(commonAxis([CURVE, OTHER], "number")).toEqual([0, 2, 4, 9]);
  expect(commonAxis([CURVE, OTHER], "secs")).toEqual([0.5, 1, 2, 3, 7]);
});

test("the default schedule is left out where it would dwarf the rest", () => {
  expect(commonAxis([CURVE, OTHER], "secs", false)).toEqual([2, 3, 7]);
});

test("an axis of many places is thinned, and keeps its ends", () => {
  const number = Array.from({ length: 5000 }, (_, place) => place);
  const axis = commonAxis([{ number, secs: number, best_secs: number }], "number");
  expect(axis).toHaveLength(800);
  expect([axis[0], axis.at(-1)]).toEqual([0, 4999]);
});

test("the best holds until it changes, and is not known before the start and after the end", () => {
  expect(valuesAt(CURVE, "secs", [0, 0.5, 1.9, 2, 7, 8])).toEqual([null, 8, 8, 4, 4, null]);
});

test("a speed-up is the default's time over the time", () => {
  expect(measured([null, 2], job({ default_provisional_secs: 10 }), "speedup")).toEqual([null, 5]);
  expect(measured([1], job({ default_provisional_secs: null }), "speedup")).toEqual([null]);
});

test("a band is from the least to the greatest, around the median of the seeds that are there", () => {
  const rows = [
    [4, 1, null],
    [6, 2, null],
    [5, 9, 3],
  ];
  expect(bandOf(rows)).toEqual({ middle: [5, 2, null], low: [4, 1, null], high: [6, 9, null] });
});

test("a ratio's interval holds whatever both times are within theirs", () => {
  const base = confirmed({ best_secs: 2, best_interval: [1.9, 2.1] });
  const slow = confirmed({ best_secs: 4, best_interval: [3.8, 4.2] });
  const found = ratioTo(slow, base, "confirmed");
  expect(found?.ratio).toBe(2);
  expect(found?.interval?.[0]).toBeCloseTo(3.8 / 2.1);
  expect(found?.interval?.[1]).toBeCloseTo(4.2 / 1.9);
  expect(ratioTo(base, base, "confirmed")).toEqual({ ratio: 1, interval: null });
  expect(fastest([slow, base, job({ best_secs: null })], "confirmed")).toBe(base);
});

test("jobs of which one still searches are compared by provisional times", () => {
  const ended = confirmed({ best_secs: 3, best_interval: [2.9, 3.1], provisional_secs: 2 });
  const searching = job({ best_secs: 2.5, best_kind: "provisional", provisional_secs: 2.5 });
  const kind = commonKind([ended, searching]);
  expect(kind).toBe("provisional");
  expect(fastest([ended, searching], kind)).toBe(ended);
  expect(ratioTo(searching, ended, kind)).toEqual({ ratio: 1.25, interval: null });
  expect(commonKind([ended, ended])).toBe("confirmed");
});
