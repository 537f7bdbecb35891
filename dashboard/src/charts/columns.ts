/** The trials of a job as columns: what all plots of its page and its table are drawn from. */

import type { components } from "../api/schema";

/** Without the names that the service will no longer send. */
export type Columns = Omit<components["schemas"]["Columns"], "place" | "speed">;

/** The facts of a trial that its columns hold. */
export interface TrialFacts {
  number: number;
  best_secs: number | null;
  predicted: number | null;
  /** Where it stands in its round: by its score, and by its speed. */
  predicted_percentile: number | null;
  relative_speed: number | null;
  sketch: string;
  outcome: string;
}

export const OK = "ok";

export const NO_COLUMNS: Columns = {
  number: [],
  secs: [],
  best_secs: [],
  predicted: [],
  predicted_percentile: [],
  relative_speed: [],
  round: [],
  sketch: [],
  outcome: [],
  sketches: [],
  outcomes: [],
  num_trials: 0,
  is_thinned: false,
};

export function factsAt(columns: Columns, index: number): TrialFacts | undefined {
  const number = columns.number[index];
  if (number === undefined) return undefined;
  return {
    number,
    best_secs: columns.best_secs[index] ?? null,
    predicted: columns.predicted[index] ?? null,
    predicted_percentile: columns.predicted_percentile[index] ?? null,
    relative_speed: columns.relative_speed[index] ?? null,
    sketch: columns.sketches[columns.sketch[index] ?? -1] ?? "",
    outcome: columns.outcomes[columns.outcome[index] ?? -1] ?? "",
  };
}

/** The columns with `more` in the place of all from trial `from` on; names keep their places. */
export function replaceFrom(columns: Columns, from: number, more: Columns): Columns {
  const found = columns.number.findIndex((number) => number >= from);
  const end = found < 0 ? columns.number.length : found;
  const sketches = [...columns.sketches];
  const outcomes = [...columns.outcomes];
  const join = <Item>(before: Item[], after: Item[]) => [...before.slice(0, end), ...after];
  return {
    number: join(columns.number, more.number),
    secs: join(columns.secs, more.secs),
    best_secs: join(columns.best_secs, more.best_secs),
    predicted: join(columns.predicted, more.predicted),
    predicted_percentile: join(columns.predicted_percentile, more.predicted_percentile),
    relative_speed: join(columns.relative_speed, more.relative_speed),
    round: join(columns.round, more.round),
    sketch: join(columns.sketch, more.sketch.map(place(more.sketches, sketches))),
    outcome: join(columns.outcome, more.outcome.map(place(more.outcomes, outcomes))),
    sketches,
    outcomes,
    num_trials: Math.max(columns.num_trials, more.num_trials),
    is_thinned: columns.is_thinned || more.is_thinned,
  };
}

/** Where a name of `from` stands in `to`, at whose end new ones are put. */
function place(from: string[], to: string[]): (index: number) => number {
  const found = from.map((name) => {
    const known = to.indexOf(name);
    return known < 0 ? to.push(name) - 1 : known;
  });
  return (index) => found[index] ?? 0;
}

/** The places at which the best time so far fell. */
export function improvements(columns: Columns): number[] {
  let best = Infinity;
  const found: number[] = [];
  columns.best_secs.forEach((secs, index) => {
    if (secs === null || secs >= best) return;
    best = secs;
    found.push(index);
  });
  return found;
}

/** How many trials each name of a column has, for the names in their order. */
export function counts(column: readonly number[], names: readonly string[]): number[] {
  const found = names.map(() => 0);
  for (const index of column) found[index] = (found[index] ?? 0) + 1;
  return found;
}
