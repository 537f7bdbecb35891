/** The sizes of a search over ranges: in words, and as intervals that one kernel runs. */

import type { Shapes } from "../../api/client";

type ShapeTime = Shapes["times"][number];

export interface Interval {
  kernel: number;
  /** The sizes that were timed in it. */
  low: number;
  high: number;
  /** Its part of the whole range, on a scale of logarithms. */
  share: number;
}

/** A range of each extent: `M = 1 to 512`. */
export function rangesInWords(ranges: Shapes["ranges"]): string {
  return Object.entries(ranges)
    .map(([name, [low, high]]) => `${name} = ${low} to ${high}`)
    .join(", ");
}

/** The values of the extents: `M = 8`. */
export function sizesInWords(sizes: ShapeTime["sizes"]): string {
  return Object.entries(sizes)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
}

/** A loss: `+3.1%` takes longer, `-1.0%` is faster. */
export function signedPercent(loss: number | null): string {
  if (loss === null) return "–";
  return `${loss < 0 ? "−" : "+"}${Math.abs(100 * loss).toFixed(1)}%`;
}

/** The name of the only extent; null if there are several. */
export function onlyExtent(ranges: Shapes["ranges"]): string | null {
  const names = Object.keys(ranges);
  return names.length === 1 ? (names[0] ?? null) : null;
}

/** The runs of timed sizes with one kernel, in ascending order of the only extent. */
export function intervals(times: readonly ShapeTime[], extent: string): Interval[] {
  const found: Interval[] = [];
  for (const { sizes, kernel } of times) {
    const size = sizes[extent] ?? 0;
    const last = found.at(-1);
    if (last && last.kernel === kernel) last.high = size;
    else found.push({ kernel, low: size, high: size, share: 0 });
  }
  const ends = found.map(({ high }, index) => Math.sqrt(high * (found[index + 1]?.low ?? high)));
  const least = found[0]?.low ?? 1;
  const width = (index: number) =>
    Math.log2((ends[index] ?? 1) + 1) - Math.log2(index ? (ends[index - 1] ?? 1) + 1 : least);
  const total = found.reduce((sum, _, index) => sum + width(index), 0);
  return found.map((interval, index) => ({ ...interval, share: width(index) / total }));
}
