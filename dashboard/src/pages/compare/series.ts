/** What a comparison draws and tells of jobs: curves over a common axis, bands over seeds, ratios. */

import type { Job } from "../../api/client";
import type { Compared, Curve } from "../../api/lists";
import type { TimeKind } from "../../components/BestTime";

export type Axis = "number" | "secs";
export type Measure = "time" | "speedup";
type Values = (number | null)[];

const MOST_POINTS = 800;

export interface Group {
  key: string;
  label: string;
  members: Compared[];
}

/** The jobs by all that they have in common but their seed, in their order. */
export function bySeed(compared: readonly Compared[]): Group[] {
  const groups = new Map<string, Group>();
  for (const one of compared) {
    const key = keyOf(one.job);
    const known = groups.get(key);
    if (known) known.members.push(one);
    else groups.set(key, { key, label: labelOf(one.job), members: [one] });
  }
  return [...groups.values()];
}

function keyOf(job: Job): string {
  const { workload_key, target, strategy, max_trials, rules, max_secs, plateau } = job;
  return JSON.stringify([workload_key, target, strategy, max_trials, rules, max_secs, plateau]);
}

function labelOf(job: Job): string {
  return `${job.workload_name}, ${job.strategy}, ${job.max_trials} trials`;
}

/** Whether times can be compared: one workload on one target. */
export function isOneTask(jobs: readonly Job[]): boolean {
  return new Set(jobs.map((job) => `${job.workload_key}@${job.target}`)).size <= 1;
}

/** The places where any curve changes, at most so many; without trial 0 where that is asked for. */
export function commonAxis(curves: readonly Curve[], axis: Axis, hasDefault = true): number[] {
  const places = curves.flatMap((curve) =>
    curve[axis].filter((_, place) => hasDefault || curve.number[place] !== 0),
  );
  const all = [...new Set(places)].sort((a, b) => a - b);
  if (all.length <= MOST_POINTS) return all;
  const step = (all.length - 1) / (MOST_POINTS - 1);
  return Array.from({ length: MOST_POINTS }, (_, place) => all[Math.round(place * step)] ?? 0);
}

/** The best so far at each place; null before the first trial and after the last. */
export function valuesAt(curve: Curve, axis: Axis, x: readonly number[]): Values {
  const places = curve[axis];
  const end = places.at(-1) ?? -Infinity;
  let next = 0;
  let best: number | null = null;
  return x.map((at) => {
    while (next < places.length && (places[next] ?? Infinity) <= at) {
      best = curve.best_secs[next] ?? null;
      next += 1;
    }
    return at > end ? null : best;
  });
}

/** Times, or how many times faster than the default schedule; all of them are provisional. */
export function measured(values: Values, job: Job, measure: Measure): Values {
  if (measure === "time") return values;
  const before = job.default_provisional_secs;
  return values.map((value) => (value && before ? before / value : null));
}

/** The median of several rows, and what they are between; where less than half are, nothing. */
export function bandOf(rows: readonly Values[]): { middle: Values; low: Values; high: Values } {
  const middle: Values = [];
  const low: Values = [];
  const high: Values = [];
  for (let place = 0; place < (rows[0]?.length ?? 0); place += 1) {
    const found = rows
      .map((row) => row[place] ?? null)
      .filter((value) => value !== null)
      .sort((a, b) => a - b);
    const isKnown = found.length * 2 > rows.length;
    middle.push(isKnown ? median(found) : null);
    low.push(isKnown ? (found[0] ?? null) : null);
    high.push(isKnown ? (found.at(-1) ?? null) : null);
  }
  return { middle, low, high };
}

/** The middle of sorted numbers, or the mean of the two in the middle. */
export function median(sorted: readonly number[]): number | null {
  if (!sorted.length) return null;
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? 0;
  return sorted.length % 2 ? upper : ((sorted[half - 1] ?? 0) + upper) / 2;
}

export interface Ratio {
  ratio: number;
  /** Between what it is if both intervals hold; none if a job was not measured again. */
  interval: readonly [number, number] | null;
}

/** The kind of time that all jobs have: confirmed ones once every job is over, else provisional. */
export function commonKind(jobs: readonly Job[]): TimeKind {
  const kinds = new Set(jobs.flatMap((job) => job.best_kind ?? []));
  const [kind = "confirmed"] = kinds;
  return kinds.size > 1 ? "provisional" : kind;
}

/** A job's best time of a kind. */
export function timeOf(job: Job, kind: TimeKind): number | null {
  return (kind === job.best_kind ? job.best_secs : job.provisional_secs) ?? null;
}

/** How many times as long as another job's best a job's best takes, by times of one kind. */
export function ratioTo(job: Job, base: Job, kind: TimeKind): Ratio | null {
  const [time, least] = [timeOf(job, kind), timeOf(base, kind)];
  if (!time || !least) return null;
  const [own, other] = kind === "confirmed" ? [job.best_interval, base.best_interval] : [];
  return {
    ratio: time / least,
    interval: own && other && job !== base ? [own[0] / other[1], own[1] / other[0]] : null,
  };
}

/** The job with the shortest time of a kind. */
export function fastest(jobs: readonly Job[], kind: TimeKind): Job | undefined {
  const timed = jobs.filter((job) => timeOf(job, kind));
  return timed.toSorted((a, b) => (timeOf(a, kind) ?? 0) - (timeOf(b, kind) ?? 0))[0];
}
