/** Where the values of decisions stand on the axes of parallel coordinates. */

import type { Span } from "./selection";

/** Where each value of an axis stands, from 0 (below) to 1: its values at equal distances. */
export function positions(values: readonly number[]): Map<number, number> {
  const last = values.length - 1;
  return new Map(values.map((value, index) => [value, last ? index / last : 0.5]));
}

/** The values that stand between two places on an axis, null if there are none. */
export function valuesBetween(values: readonly number[], [low, high]: Span): Span | null {
  const found = [...positions(values)].filter(([, at]) => at >= low && at <= high);
  const first = found[0]?.[0];
  const last = found.at(-1)?.[0];
  return first === undefined || last === undefined ? null : [first, last];
}

/** The names of decisions, without the block if all are of one: `i of C, part 2` is `i, part 2`. */
export function shortNames(names: readonly string[]): string[] {
  const blocks = new Set(names.map((name) => BLOCK.exec(name)?.[1]));
  return blocks.size === 1 ? names.map((name) => name.replace(BLOCK, "$2")) : [...names];
}

const BLOCK = / of ([^\s,]+)(, part \d+)?$/;

/** At most `most` of the values, the least and the greatest among them, to write beside an axis. */
export function labelled(values: readonly number[], most: number): number[] {
  if (values.length <= most) return [...values];
  const step = (values.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, index) => values[Math.round(index * step)] ?? 0);
}
