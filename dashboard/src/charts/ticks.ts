/** How far an axis reaches, and where it has its ticks. */

import { secs } from "../format";

/** The extent of values with a margin; null if there are none, on a log axis none above 0. */
export function extent(
  values: Iterable<number | null>,
  isLog: boolean,
): [low: number, high: number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || (isLog && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return null;
  if (isLog) {
    const factor = low === high ? 2 : (high / low) ** 0.05;
    return [low / factor, high * factor];
  }
  const margin = (high - low) * 0.03 || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

const STEPS = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]] as const;

/** Round values between two positive ones, at most `most` of them and if possible three. */
export function logTicks(low: number, high: number, most = 8): number[] {
  const all = STEPS.map((steps) => within(steps, low, high));
  const finest = all.findLast((ticks) => ticks.length <= most) ?? [];
  return finest.length < 3 ? linearTicks(low, high, most) : finest;
}

function within(steps: readonly number[], low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const step of steps) {
      const tick = Number((step * 10 ** power).toPrecision(3));
      if (tick >= low && tick <= high) found.push(tick);
    }
  }
  return found;
}

/** Whole numbers at equal steps between two values: a trial has no half. */
export function wholeTicks(low: number, high: number, most = 8): number[] {
  return linearTicks(low, high, Math.min(most, Math.max(1, high - low)));
}

/** Round values at equal steps between two others, at most about `most` of them. */
export function linearTicks(low: number, high: number, most = 8): number[] {
  const rough = (high - low) / most;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10) * power;
  const found: number[] = [];
  for (let count = Math.ceil(low / step); count * step <= high; count++) {
    found.push(Number((count * step).toPrecision(12)));
  }
  return found;
}

/** Times of day beside ticks, with seconds if several ticks are in one minute. */
export function clocks(ticks: readonly number[]): string[] {
  const [first = 0, second = Infinity] = ticks;
  const style = second - first < 60 ? "medium" : "short";
  return ticks.map((secs) =>
    new Date(secs * 1000).toLocaleTimeString("en-GB", { timeStyle: style }),
  );
}

/** A time beside a tick, without the zeros that three digits may end with. */
export function tickSecs(value: number): string {
  return secs(value).replace(/(\.\d*?)0+ /, (_, kept: string) => `${kept === "." ? "" : kept} `);
}

/** Labels without those that repeat the one before, as close values may read alike. */
export function unrepeated(labels: readonly string[]): string[] {
  return labels.map((label, index) => (label === labels[index - 1] ? "" : label));
}
