/** What is said of the samples of a trial. */

export interface Spread {
  low: number;
  median: number;
  high: number;
  /** The middle half. */
  middle: readonly [number, number];
}

/** Where samples lie; there is at least one. */
export function spread(samples: readonly number[]): Spread {
  const sorted = samples.toSorted((a, b) => a - b);
  return {
    low: quantile(sorted, 0),
    median: quantile(sorted, 0.5),
    high: quantile(sorted, 1),
    middle: [quantile(sorted, 0.25), quantile(sorted, 0.75)],
  };
}

function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)] ?? NaN;
  const above = sorted[Math.ceil(at)] ?? NaN;
  return below + (above - below) * (at - Math.floor(at));
}
