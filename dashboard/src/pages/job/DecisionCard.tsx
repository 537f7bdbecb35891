import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";

import type { Decisions } from "../../api/plots";
import { shortNames } from "../../charts/axes";
import { Parallel, SpeedScale } from "../../charts/Parallel";
import { decisionCondition, type Span } from "../../charts/selection";
import { Answer } from "../../components/Answer";
import { Meter } from "../../components/Figures";
import { percent } from "../../format";
import type { SelectionHandle } from "./useSelection";

interface Props {
  query: UseQueryResult<Decisions>;
  isChosen: (row: number) => boolean;
  handle: SelectionHandle;
  onSketch: (name: string) => void;
}

/** What trials decided, and which decisions matter. */
export function DecisionCard({ query, isChosen, handle, onSketch }: Props) {
  return (
    <section className="card">
      <Answer query={query}>
        {(decisions) => (
          <>
            <div className="page-head">
              <h2>Decisions</h2>
              <SpeedScale decisions={decisions} />
              {decisions.sketches.length > 1 && (
                <SketchChoice decisions={decisions} handle={handle} onSketch={onSketch} />
              )}
            </div>
            {decisions.decisions.length ? (
              <Shown decisions={decisions} isChosen={isChosen} handle={handle} />
            ) : (
              <p className="quiet">No decisions yet: the default schedule has none.</p>
            )}
          </>
        )}
      </Answer>
    </section>
  );
}

interface SketchProps {
  decisions: Decisions;
  handle: SelectionHandle;
  onSketch: (name: string) => void;
}

function SketchChoice({ decisions, handle, onSketch }: SketchProps) {
  return (
    <label className="push row">
      <span>Sketch</span>
      <select
        className="mono"
        value={decisions.sketch ?? ""}
        onChange={(event) => {
          onSketch(event.target.value);
          const dropped = Object.keys(handle.selection.decisions).map(decisionCondition);
          handle.select({
            ...Object.fromEntries(dropped.map((name) => [name, undefined])),
            ...(handle.selection.sketch ? { sketch: event.target.value } : {}),
          });
        }}
      >
        {decisions.sketches.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

interface ShownProps {
  decisions: Decisions;
  isChosen: (row: number) => boolean;
  handle: SelectionHandle;
}

function Shown({ decisions, isChosen, handle }: ShownProps) {
  const { selection, select } = handle;
  const brush = (name: string, values: Span | undefined) => {
    // The decisions are of one sketch: it stands in the address with them.
    const sketch = values && decisions.sketch ? { sketch: decisions.sketch } : {};
    select({ [decisionCondition(name)]: values, ...sketch });
  };
  return (
    <>
      <Parallel
        decisions={decisions}
        summary={inWords(decisions)}
        brushed={(name) => selection.decisions[name]}
        isChosen={isChosen}
        onBrush={brush}
      />
      <p className="quiet small">
        Each line is a trial. Drag along an axis to select values; click the axis to clear them.
        {decisions.is_sampled &&
          ` Of ${decisions.num_trials.toLocaleString("en")} trials, ` +
            `${decisions.number.length.toLocaleString("en")} are drawn, the fastest among them.`}
      </p>
      <div className="columns">
        <Importance decisions={decisions} />
        <ByKeyboard decisions={decisions} onBrush={brush} />
      </div>
    </>
  );
}

function Importance({ decisions }: { decisions: Decisions }) {
  const known = decisions.decisions.filter(({ importance }) => importance !== null);
  const all = decisions.decisions.map(({ name }) => name);
  const short = new Map(shortNames(all).map((name, index) => [all[index], name]));
  const sorted = known.toSorted((a, b) => (b.importance ?? 0) - (a.importance ?? 0));
  return (
    <div>
      <h3>Importance</h3>
      {sorted.length === 0 && <p className="quiet">Too few correct trials so far.</p>}
      <table className="tight">
        <tbody>
          {sorted.map(({ name, importance }) => (
            <tr key={name}>
              <th scope="row" className="mono long" title={name}>
                {short.get(name)}
              </th>
              <td className="bar-cell">
                <Meter share={importance ?? 0} />
              </td>
              <td className="number">{percent(importance, 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="quiet small">The share of the time variance that one decision explains.</p>
    </div>
  );
}

interface KeyboardProps {
  decisions: Decisions;
  onBrush: (name: string, values: Span) => void;
}

function ByKeyboard({ decisions, onBrush }: KeyboardProps) {
  const axes = decisions.decisions;
  const [chosen, setChosen] = useState("");
  const axis = axes.find(({ name }) => name === chosen) ?? axes[0];
  const values = axis?.values ?? [];
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const ends = [Number(form.get("low")), Number(form.get("high"))].sort((a, b) => a - b);
        if (axis) onBrush(axis.name, [ends[0] ?? 0, ends[1] ?? 0]);
      }}
    >
      <h3>Select by a decision</h3>
      <div className="row">
        <label>
          <span>Decision</span>
          <select
            value={axis?.name}
            onChange={(event) => {
              setChosen(event.target.value);
            }}
          >
            {axes.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <Values key={`${axis?.name} low`} name="low" label="From" values={values} at={0} />
        <Values key={`${axis?.name} high`} name="high" label="To" values={values} at={-1} />
        <button className="low">Select</button>
      </div>
    </form>
  );
}

function Values({ name, label, values, at }: ValuesProps) {
  return (
    <label>
      <span>{label}</span>
      <select name={name} defaultValue={values.at(at)}>
        {values.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    </label>
  );
}

interface ValuesProps {
  name: string;
  label: string;
  values: readonly number[];
  at: number;
}

function inWords({ decisions, sketch }: Decisions): string {
  const first = decisions.toSorted((a, b) => (b.importance ?? 0) - (a.importance ?? 0))[0];
  const most = first?.importance ? `; ${first.name} is the most important` : "";
  return `${decisions.length} decisions of ${sketch ?? "trials"}, one axis each${most}`;
}
