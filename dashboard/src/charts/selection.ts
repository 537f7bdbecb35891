/** Which trials are selected: one set of conditions for all plots and the table, in the address. */

/** The least and the greatest value that are selected, both included. */
export type Span = readonly [number, number];

/** Each condition that is there must hold. */
export interface Selection {
  trials?: Span;
  time?: Span;
  /** The place in its round by the model's score, and the share of its fastest's speed. */
  place?: Span;
  speed?: Span;
  sketch?: string;
  outcome?: string;
  /** By the name of a decision. */
  decisions: Readonly<Record<string, Span>>;
}

/** What a condition may ask of a trial; what is not known meets no condition. */
export interface Selectable {
  number: number;
  best_secs: number | null;
  predicted_percentile?: number | null | undefined;
  relative_speed?: number | null | undefined;
  sketch: string;
  outcome?: string | undefined;
  decision?: ((name: string) => number | undefined) | undefined;
}

export const NOTHING: Selection = { decisions: {} };

const SPANS = ["trials", "time", "place", "speed"] as const;
const NAMES = ["sketch", "outcome"] as const;
const DECISION = "d.";

export type Condition = (typeof SPANS)[number] | (typeof NAMES)[number] | `d.${string}`;

export function decisionCondition(name: string): Condition {
  return `${DECISION}${name}` as Condition;
}

export function isSelected(trial: Selectable, selection: Selection): boolean {
  const { trials, time, place, speed, sketch, outcome, decisions } = selection;
  return (
    (!trials || isWithin(trial.number, trials)) &&
    (!time || isWithin(trial.best_secs, time)) &&
    (!place || isWithin(trial.predicted_percentile, place)) &&
    (!speed || isWithin(trial.relative_speed, speed)) &&
    (sketch === undefined || trial.sketch === sketch) &&
    (outcome === undefined || trial.outcome === outcome) &&
    Object.entries(decisions).every(([name, span]) => isWithin(trial.decision?.(name), span))
  );
}

function isWithin(value: number | null | undefined, [low, high]: Span): boolean {
  return value != null && value >= low && value <= high;
}

export function isEmpty(selection: Selection): boolean {
  return conditions(selection).length === 0;
}

/** Whether decisions are selected, by which the service does not look for trials. */
export function isByDecision({ decisions }: Selection): boolean {
  return Object.keys(decisions).length > 0;
}

/** The conditions that there are, by their names in the address. */
export function conditions(selection: Selection): Condition[] {
  return [
    ...[...SPANS, ...NAMES].filter((name) => selection[name] !== undefined),
    ...Object.keys(selection.decisions).map(decisionCondition),
  ];
}

export function valueOf(selection: Selection, name: Condition): Span | string | undefined {
  if (isOfDecision(name)) return selection.decisions[name.slice(DECISION.length)];
  return selection[name];
}

/** The selection with another value for one condition, or without it. */
export function withCondition(
  selection: Selection,
  name: Condition,
  value: Span | string | undefined,
): Selection {
  const isDecision = isOfDecision(name);
  const own = isDecision ? name.slice(DECISION.length) : name;
  const changed = (values: object) => {
    const others = Object.entries(values).filter(([other]) => other !== own);
    return Object.fromEntries(value === undefined ? others : [...others, [own, value]]);
  };
  if (isDecision) return { ...selection, decisions: changed(selection.decisions) };
  return changed(selection) as unknown as Selection;
}

export function readSelection(params: URLSearchParams): Selection {
  let found = NOTHING;
  for (const [name, text] of params) {
    if (!isCondition(name)) continue;
    const value = isOneOf(NAMES, name) ? text : readSpan(text);
    if (value !== undefined) found = withCondition(found, name, value);
  }
  return found;
}

/** An address with a selection in the place of the one that it had. */
export function writeSelection(selection: Selection, params: URLSearchParams): URLSearchParams {
  const made = new URLSearchParams([...params].filter(([name]) => !isCondition(name)));
  for (const name of conditions(selection)) {
    const value = valueOf(selection, name);
    if (value !== undefined) made.set(name, typeof value === "string" ? value : value.join("~"));
  }
  return made;
}

function isCondition(name: string): name is Condition {
  return isOneOf(SPANS, name) || isOneOf(NAMES, name) || isOfDecision(name);
}

function isOfDecision(name: string): name is `d.${string}` {
  return name.startsWith(DECISION);
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

function readSpan(text: string): Span | undefined {
  const parts = text.split("~").map((part) => (part.trim() ? Number(part) : NaN));
  const [low, high] = parts;
  if (parts.length !== 2 || low === undefined || high === undefined) return undefined;
  return low <= high ? [low, high] : undefined;
}
