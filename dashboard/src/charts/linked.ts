/** What all plots of a job agree on: which of the trials that they draw are selected. */

import type { Decisions } from "../api/plots";
import { factsAt, type Columns, type Standings } from "./columns";
import { isEmpty, isSelected, type Selection } from "./selection";

/** What is known of a trial by its number, beside its own columns. */
export interface Known {
  standing: (number: number) => { place: number | null; speed: number | null } | undefined;
  decision: (number: number, name: string) => number | undefined;
}

/** Where the standings and the decisions of trials are found by their numbers. */
export function knownOf(
  scored: Columns,
  { place, speed }: Standings,
  decisions: Decisions | undefined,
): Known {
  const scoredAt = indexOf(scored.number);
  const rowAt = indexOf(decisions?.number ?? []);
  const columnAt = new Map(decisions?.decisions.map(({ name }, index) => [name, index]));
  return {
    standing: (number) => {
      const index = scoredAt.get(number);
      if (index === undefined) return undefined;
      return { place: place[index] ?? null, speed: speed[index] ?? null };
    },
    decision: (number, name) => {
      const row = rowAt.get(number);
      const column = columnAt.get(name);
      if (row === undefined || column === undefined) return undefined;
      return decisions?.rows[row]?.[column];
    },
  };
}

type Test = (index: number) => boolean;

const ANY: Test = () => true;

/** Which of the trials in columns are selected. */
export function chosenOf(columns: Columns, known: Known, selection: Selection): Test {
  if (isEmpty(selection)) return ANY;
  const found = columns.number.map((number, index) => {
    const facts = factsAt(columns, index);
    return facts !== undefined && isSelected({ ...facts, ...about(number, known) }, selection);
  });
  return (index) => found[index] ?? false;
}

/** Which rows of decisions are selected; `outcomes` is by number where the columns know it. */
export function chosenRowsOf(
  decisions: Decisions,
  known: Known,
  outcomes: ReadonlyMap<number, string>,
  selection: Selection,
): Test {
  if (isEmpty(selection)) return ANY;
  const found = decisions.number.map((number, index) =>
    isSelected(
      {
        number,
        best_secs: decisions.best_secs[index] ?? null,
        sketch: decisions.sketch ?? "",
        outcome: decisions.best_secs[index] == null ? outcomes.get(number) : "ok",
        ...about(number, known),
      },
      selection,
    ),
  );
  return (index) => found[index] ?? false;
}

export function outcomesOf(columns: Columns): Map<number, string> {
  return new Map(
    columns.number.map((number, index) => [
      number,
      columns.outcomes[columns.outcome[index] ?? -1] ?? "",
    ]),
  );
}

function about(number: number, known: Known) {
  return {
    ...known.standing(number),
    decision: (name: string) => known.decision(number, name),
  };
}

function indexOf(numbers: readonly number[]): Map<number, number> {
  return new Map(numbers.map((number, index) => [number, index]));
}
