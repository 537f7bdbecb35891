import { count, duration, plural, secs } from "../format";
import { improvements, type Columns } from "./columns";
import { Dots } from "./Dots";
import { outcomeColors, sketchColors } from "./palette";
import type { Span } from "./selection";
import { tickSecs } from "./ticks";

/** How the plot of all trials is drawn. */
export interface View {
  x: "trials" | "seconds";
  isLog: boolean;
  color: "sketch" | "outcome";
}

interface Props {
  columns: Columns;
  view: View;
  defaultSecs: number | null;
  isEstimate: boolean;
  isOver: boolean;
  isChosen: (index: number) => boolean;
  onBrush: (trials: Span, time: Span | null) => void;
  onOpen: (number: number) => void;
}

/** Every trial as a dot, the shortest sample so far as a line, failures in a lane on top. */
export function TrialPlot({
  columns,
  view,
  defaultSecs,
  isEstimate,
  isOver,
  isChosen,
  onBrush,
  onOpen,
}: Props) {
  const isByNumber = view.x === "trials";
  const xs = isByNumber ? columns.number : columns.secs;
  const isBySketch = view.color === "sketch";
  return (
    <Dots
      height={340}
      x={xs}
      y={columns.best_secs}
      group={isBySketch ? columns.sketch : columns.outcome}
      colors={isBySketch ? sketchColors(columns.sketches) : outcomeColors(columns.outcomes)}
      isChosen={isChosen}
      steps={bestLine(columns, xs)}
      level={defaultSecs}
      xAxis={{
        label: isByNumber ? "trial" : "time since the start",
        isWhole: isByNumber,
        text: (value) => (isByNumber ? value.toLocaleString("en") : clock(value)),
      }}
      yAxis={{ label: "run time", isLog: view.isLog, text: tickSecs }}
      summary={describe(columns, isEstimate, isOver)}
      name={(index) => nameOf(columns, index)}
      onBrush={(x, y) => {
        onBrush(trialsWithin(columns, xs, x), y);
      }}
      onOpen={(index) => {
        onOpen(columns.number[index] ?? 0);
      }}
    />
  );
}

function bestLine(columns: Columns, xs: number[]): [number, number][] {
  const found = improvements(columns).map((index): [number, number] => [
    xs[index] ?? 0,
    columns.best_secs[index] ?? 0,
  ]);
  const last = found.at(-1);
  return last ? [...found, [xs.at(-1) ?? last[0], last[1]]] : found;
}

/** The first and the last trial whose place on the axis is within a span. */
function trialsWithin(columns: Columns, xs: number[], [low, high]: Span): Span {
  const numbers = columns.number.filter((_, index) => {
    const x = xs[index] ?? 0;
    return x >= low && x <= high;
  });
  return [numbers[0] ?? Math.ceil(low), numbers.at(-1) ?? Math.floor(high)];
}

function clock(seconds: number): string {
  return seconds < 120 ? `${Number(seconds.toPrecision(3))} s` : duration(seconds);
}

function nameOf(columns: Columns, index: number): string {
  const sketch = columns.sketches[columns.sketch[index] ?? -1] ?? "";
  return `Trial ${columns.number[index] ?? ""}: ${secs(columns.best_secs[index])}, ${sketch}`;
}

/** The plot in a sentence. */
export function describe(columns: Columns, isEstimate: boolean, isOver: boolean): string {
  const best = improvements(columns).at(-1);
  if (best === undefined) return isOver ? "No trial was correct." : "No correct trial yet.";
  const number = columns.number[best] ?? 0;
  const since = Math.max(0, (columns.number.at(-1) ?? 0) - number);
  return (
    `The shortest ${isEstimate ? "estimate" : "sample"} is ${secs(columns.best_secs[best])}` +
    `${isEstimate ? "" : " (provisional)"}, of trial ` +
    `${count(number)}; ` +
    (since
      ? `the ${plural(since, "later trial")} ${since === 1 ? "was" : "were"} no faster.`
      : "it was the last trial.")
  );
}
