/** Distinct line colours, legible on light and dark backgrounds. */
export const COLORS = [
  "#3b82f6",
  "#e0791f",
  "#22a06b",
  "#a259d9",
  "#d6487e",
  "#8a8f1f",
  "#1aa3a3",
  "#94765f",
] as const;

/** The colour of the line of a place; they repeat. */
export function colorOf(place: number): string {
  return COLORS[place % COLORS.length] ?? COLORS[0];
}
