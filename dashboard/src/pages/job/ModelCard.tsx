import type { Summary } from "../../api/plots";
import type { Columns } from "../../charts/columns";
import { ModelPlot } from "../../charts/ModelPlot";
import { Numbers } from "../../components/Numbers";
import { percent } from "../../format";
import type { SelectionHandle } from "./useSelection";

interface Props {
  columns: Columns;
  summary: Summary | undefined;
  isChosen: (index: number) => boolean;
  handle: SelectionHandle;
  onOpen: (number: number) => void;
}

/** What the cost model predicted against what was measured, and what it was worth. */
export function ModelCard({ columns, summary, isChosen, handle, onOpen }: Props) {
  const model = summary?.model;
  const hasScores = columns.predicted_percentile.some((value) => value !== null);
  return (
    <section className="card">
      <h2>Predicted and measured</h2>
      {hasScores ? (
        <>
          <ModelPlot
            columns={columns}
            summary={inWords(model)}
            isChosen={isChosen}
            onBrush={(place, speed) => {
              handle.select({ place, speed: speed ?? undefined });
            }}
            onOpen={onOpen}
          />
          {model && <Numbers items={figures(model)} />}
          <p className="quiet small">
            {inWords(model)} Scores are comparable only within one round.{" "}
            {summary && ORIGINS[summary.model_origin]}
          </p>
        </>
      ) : (
        <p className="quiet">
          No trial has a predicted score. The model learns from the first rounds of a job, and some
          strategies use no model. {summary && ORIGINS[summary.model_origin]}
        </p>
      )}
    </section>
  );
}

function figures({ rank_correlation: rank, top_quarter: top, num_trials, num_rounds }: Model) {
  return [
    ["Rank correlation", rank === null ? "–" : rank.toFixed(2)],
    ["Best quarter found", percent(top, 0)],
    ["Scored trials", num_trials.toLocaleString("en")],
    ["Rounds", num_rounds.toLocaleString("en")],
  ] as const;
}

type Model = Summary["model"];

const ORIGINS: Record<Summary["model_origin"], string> = {
  measurements: "The job started with a model of earlier measurements.",
  recorded: "The job started with the base model, trained on recorded measurements.",
  estimate:
    "The job started without a model: an analytic estimate (roofline) ordered the first candidates.",
  nothing: "",
};

function inWords(model: Model | undefined): string {
  const rank = model?.rank_correlation;
  if (!model || rank == null) return "Too few trials to evaluate the predictions.";
  const verdict =
    rank > 0.7
      ? "ranks well"
      : rank > 0.4
        ? "ranks fairly"
        : rank > 0.1
          ? "ranks poorly"
          : "guesses";
  return (
    `The model ${verdict}: its best quarter contains ${percent(model.top_quarter, 0)} of each ` +
    "round's fastest quarter (random order: 25 %)."
  );
}
