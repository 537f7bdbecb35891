/** What plots draw of trials. */

import type { Trial } from "../api/client";

/** The first and the last trial of a selection. */
export type Span = readonly [number, number];

const MOST_SKETCHES = 7;

/** The shortest sample of a trial in seconds; null if it failed. */
export function bestSecs(trial: Trial): number | null {
  if (trial.error !== null || !trial.run_secs.length) return null;
  return Math.min(...trial.run_secs);
}

/** After each trial, the best time until then; null before the first. */
export function bestSoFar(trials: readonly Trial[]): (number | null)[] {
  let best: number | null = null;
  return trials.map((trial) => {
    const found = bestSecs(trial);
    if (found !== null && (best === null || found < best)) best = found;
    return best;
  });
}

/** For each of the most frequent sketches, its trials' times, null where a trial is another's. */
export function bySketch(trials: readonly Trial[]): { name: string; secs: (number | null)[] }[] {
  const counts = new Map<string, number>();
  for (const { sketch } of trials) counts.set(sketch, (counts.get(sketch) ?? 0) + 1);
  const frequent = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const own = new Set(frequent.slice(0, MOST_SKETCHES));
  const names = frequent.length > MOST_SKETCHES ? [...own, "others"] : [...own];
  return names.map((name) => ({
    name,
    secs: trials.map((trial) =>
      (own.has(trial.sketch) ? trial.sketch : "others") === name ? bestSecs(trial) : null,
    ),
  }));
}

export interface Failures {
  kind: string;
  count: number;
  first: Trial;
}

/** How many trials failed in each way, the most frequent first. */
export function failures(trials: readonly Trial[]): Failures[] {
  const found = new Map<string, Failures>();
  for (const trial of trials) {
    if (trial.error === null) continue;
    const known = found.get(trial.error);
    if (known) known.count += 1;
    else found.set(trial.error, { kind: trial.error, count: 1, first: trial });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

/** Seconds spent on trials, by what they were spent on. */
export function timeSpent(trials: readonly Trial[]): {
  build: number;
  check: number;
  time: number;
} {
  const spent = { build: 0, check: 0, time: 0 };
  for (const trial of trials) {
    spent.build += trial.build_secs;
    spent.check += trial.check_secs;
    spent.time += trial.time_secs;
  }
  return spent;
}
