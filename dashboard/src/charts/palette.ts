/** The colours of sketches, outcomes and speeds, which hold on a light and on a dark ground. */

import { OK } from "./columns";

const CORRECT = "#2f9e5b";
const FAILURES = ["#d0453c", "#d1761f", "#a35bc4", "#c4466f", "#7a7f22", "#8a6d5a", "#2a9d9d"];
const SKETCHES = ["#3b82c4", "#d1761f", CORRECT, "#a35bc4", "#c4466f", "#7a7f22", "#2a9d9d"];

export function sketchColors(names: readonly string[]): string[] {
  return names.map((_, index) => SKETCHES[index % SKETCHES.length] ?? CORRECT);
}

export function outcomeColors(names: readonly string[]): string[] {
  let failures = 0;
  return names.map((name) =>
    name === OK ? CORRECT : (FAILURES[failures++ % FAILURES.length] ?? CORRECT),
  );
}

const SPEEDS = ["#4c6ef5", "#7f6cf0", "#b566c9", "#dd5f78", "#ea580c"];

/** A colour for a share of the greatest speed, from slow blue to fast orange. */
export function speedColor(share: number): string {
  const place = Math.round(Math.min(1, Math.max(0, share)) * (SPEEDS.length - 1));
  return SPEEDS[place] ?? "";
}
