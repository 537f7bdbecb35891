import type { Job } from "../../api/client";
import type { Columns } from "../../charts/columns";
import { Legend } from "../../charts/Legend";
import { outcomeColors, sketchColors } from "../../charts/palette";
import { describe, TrialPlot } from "../../charts/TrialPlot";
import { Choice } from "../../components/Choice";
import { interval, secs } from "../../format";
import { isOver } from "./useLiveJob";
import { useOption, type SelectionHandle } from "./useSelection";

interface Props {
  job: Job;
  columns: Columns;
  isChosen: (index: number) => boolean;
  handle: SelectionHandle;
  onOpen: (number: number) => void;
}

/** All trials over time, and the shortest sample so far: times that are provisional. */
export function CurveCard({ job, columns, isChosen, handle, onOpen }: Props) {
  const [x, setX] = useOption("x", ["trials", "seconds"]);
  const [scale, setScale] = useOption("scale", ["log", "linear"]);
  const [color, setColor] = useOption("color", ["sketch", "outcome"]);
  const isEstimate = job.best_kind === "estimated";
  const isBySketch = color === "sketch";
  const names = isBySketch ? columns.sketches : columns.outcomes;
  const column = isBySketch ? columns.sketch : columns.outcome;
  return (
    <section className="card">
      <div className="page-head">
        <h2>Shortest {isEstimate ? "estimate" : "sample"} so far</h2>
        <span className="push row">
          <Choice
            label="Over"
            options={{ trials: "Trials", seconds: "Seconds" }}
            value={x}
            onChange={setX}
          />
          <Choice
            label="Scale"
            options={{ log: "Log", linear: "Linear" }}
            value={scale}
            onChange={setScale}
          />
          <Choice
            label="Colours"
            options={{ sketch: "By sketch", outcome: "By outcome" }}
            value={color}
            onChange={setColor}
          />
        </span>
      </div>
      <TrialPlot
        columns={columns}
        view={{ x, isLog: scale === "log", color }}
        defaultSecs={job.default_secs}
        isEstimate={isEstimate}
        isOver={isOver(job)}
        isChosen={isChosen}
        onBrush={(trials, time) => {
          handle.select({ trials, time: time ?? undefined });
        }}
        onOpen={onOpen}
      />
      <Legend
        label={isBySketch ? "Sketches" : "Outcomes"}
        names={names}
        colors={isBySketch ? sketchColors(names) : outcomeColors(names)}
        column={columns.is_thinned ? null : column}
        chosen={handle.selection[color]}
        onChoose={(name) => {
          handle.select({ [color]: name });
        }}
      />
      <p className="quiet small">
        {describe(columns, isEstimate, isOver(job))} {confirmed(job)}
        {job.default_secs != null && "Dashed line: the default schedule. "}Top lane: failures.
        {columns.is_thinned &&
          ` Of ${columns.num_trials.toLocaleString("en")} trials, ` +
            `${columns.number.length.toLocaleString("en")} are drawn, all improvements among them.`}{" "}
        Drag to select trials; click a dot to open its trial.
      </p>
    </section>
  );
}

/** What the finish found: of which trial, and where its time is. */
function confirmed({ best_secs, best_interval, best_number }: Job): string {
  if (!best_interval) return "";
  const trial = best_number == null ? "the best" : `trial ${best_number}`;
  return (
    `Final comparison: the fastest trials were measured again in alternating rounds. The median of ${trial} is ` +
    `${secs(best_secs)} (${interval(best_interval)}, 95%), which is the job's confirmed best. `
  );
}
