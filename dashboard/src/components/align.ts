import { diffLines } from "diff";

export interface AlignedLine {
  before: string | null;
  after: string | null;
  isSame: boolean;
}

/** The lines of two texts in rows: equal ones together, changed ones beside what replaced them. */
export function alignLines(before: string, after: string): AlignedLine[] {
  const rows: AlignedLine[] = [];
  let removed: string[] = [];
  for (const part of diffLines(before, after)) {
    const lines = part.value.replace(/\n$/, "").split("\n");
    if (part.removed) {
      removed = lines;
    } else if (part.added) {
      rows.push(...pair(removed, lines));
      removed = [];
    } else {
      rows.push(...pair(removed, []));
      removed = [];
      rows.push(...lines.map((line) => ({ before: line, after: line, isSame: true })));
    }
  }
  return [...rows, ...pair(removed, [])];
}

function pair(removed: string[], added: string[]): AlignedLine[] {
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, index) => ({
    before: removed[index] ?? null,
    after: added[index] ?? null,
    isSame: false,
  }));
}
