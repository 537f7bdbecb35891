/** Numbers, times and stop reasons as people read them. */

import { STOP_REASONS } from "./api/stopReasons";

const UNITS: readonly (readonly [number, string])[] = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

/** Three significant digits of a time in seconds, in a unit that suits it. */
export function secs(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  if (value === 0) return "0 s";
  const [scale, unit] = UNITS.find(([least]) => value >= least) ?? [1e-9, "ns"];
  return `${digits(value / scale)} ${unit}`;
}

/** Three significant digits, without an exponent. */
export function digits(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3);
}

/** How many times faster, such as `12.3×`. */
export function times(ratio: number | null | undefined): string {
  return ratio ? `${digits(ratio)}×` : "–";
}

/** How many times faster, of two times of one kind. */
export function speedup(
  before: number | null | undefined,
  after: number | null | undefined,
): string {
  return times(before && after ? before / after : null);
}

/** How long ago, in one unit. */
export function ago(iso: string | null | undefined, now: number = Date.now()): string {
  if (!iso) return "–";
  const span = duration(Math.max(0, now - Date.parse(iso)) / 1000);
  return `${span.replace(/ h .*/, " h")} ago`;
}

/** A span of time for people, in one or two units. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400)
    return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** Operations a second of a workload of `flops` operations on a type that takes `time` seconds. */
export function rate(
  flops: number | null | undefined,
  time: number | null | undefined,
  dtype: string | null | undefined,
): string {
  if (!flops || !time) return "–";
  return `${digits(flops / time / 1e9)} G${operations(dtype)}/s`;
}

/** The unit of operations on a type: OP on integers. */
export function operations(dtype: string | null | undefined): string {
  return dtype?.includes("int") ? "OP" : "FLOP";
}

/** A size of memory, such as `48 KiB`. */
export function bytes(size: number): string {
  return size < 1024 ? `${size} B` : `${Number((size / 1024).toPrecision(4))} KiB`;
}

/** A share as a percentage. */
export function percent(share: number | null | undefined, places = 1): string {
  return share == null || !Number.isFinite(share) ? "–" : `${(100 * share).toFixed(places)} %`;
}

/** An interval of two times; empty if it was not measured. */
export function interval(bounds: readonly number[] | null | undefined): string {
  return bounds ? `${secs(bounds[0])} to ${secs(bounds[1])}` : "";
}

const PREFIXES = ["", "k", "M", "G", "T", "P"] as const;

/** Three significant digits of a large number, with a prefix, such as `268 MFLOP`. */
export function large(value: number, unit: string): string {
  if (value >= 1e18) return `${value.toExponential(1).replace("e+", "e")} ${unit}`.trim();
  const power = value < 1 ? 0 : Math.min(5, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** power;
  const text = power === 0 ? String(Math.round(value)) : digits(scaled);
  return `${text} ${PREFIXES[power]}${unit}`.trim();
}

/** A count with its noun, such as `1 trial` or `2,000 trials`. */
export function plural(value: number, noun: string, several = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : several}`;
}

/** Why a search finished, in words. */
export function stopReason(reason: string): string {
  return STOP_REASONS[reason] ?? reason.replaceAll("_", " ");
}

/** A count, with thousands separators. */
export function count(value: number): string {
  return value.toLocaleString("en");
}
