/** What all plots of a job agree on: which of the trials that they draw are selected. */

import type { Decisions } from "../api/plots";
import { factsAt, OK, type Columns, type TrialFacts } from "./columns";
import { isEmpty, isSelected, type Selection } from "./selection";

/** Facts of trials by trial number. */
export interface Known {
  facts: (number: number) => TrialFacts | undefined;
  decision: (number: number, name: string) => number | undefined;
}

/** Where the columns and the decisions of trials are found by their numbers. */
export function knownOf(columns: Columns, decisions: Decisions | undefined): Known {
  const at = indexOf(columns.number);
  const rowAt = indexOf(decisions?.number ?? []);
  const columnAt = new Map(decisions?.decisions.map(({ name }, index) => [name, index]));
  return {
    facts: (number) => factsAt(columns, at.get(number) ?? -1),
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
    return facts !== undefined && isSelected({ ...facts, ...decided(number, known) }, selection);
  });
  return (index) => found[index] ?? false;
}

/** Which rows of decisions are selected. */
export function chosenRowsOf(decisions: Decisions, known: Known, selection: Selection): Test {
  if (isEmpty(selection)) return ANY;
  const found = decisions.number.map((number, index) => {
    const best = decisions.best_secs[index] ?? null;
    const facts = known.facts(number) ?? {
      number,
      best_secs: best,
      sketch: decisions.sketch ?? "",
      outcome: best === null ? undefined : OK,
    };
    return isSelected({ ...facts, ...decided(number, known) }, selection);
  });
  return (index) => found[index] ?? false;
}

function decided(number: number, known: Known) {
  return { decision: (name: string) => known.decision(number, name) };
}

function indexOf(numbers: readonly number[]): Map<number, number> {
  return new Map(numbers.map((number, index) => [number, index]));
}
