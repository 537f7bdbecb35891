import { secs } from "../format";
import type { Columns } from "./columns";
import { Dots } from "./Dots";
import { sketchColors } from "./palette";
import type { Span } from "./selection";

interface Props {
  columns: Columns;
  summary: string;
  isChosen: (index: number) => boolean;
  onBrush: (place: Span, speed: Span | null) => void;
  onOpen: (number: number) => void;
}

/** Each trial's predicted and measured position within its round. */
export function ModelPlot({ columns, summary, isChosen, onBrush, onOpen }: Props) {
  return (
    <Dots
      height={270}
      x={columns.predicted_percentile}
      y={columns.relative_speed}
      group={columns.sketch}
      colors={sketchColors(columns.sketches)}
      isChosen={isChosen}
      xAxis={{ label: "predicted percentile in its round", text: percent }}
      yAxis={{ label: "speed relative to the fastest", text: percent }}
      summary={summary}
      name={(index) =>
        `Trial ${columns.number[index] ?? ""}: predicted to be faster than ` +
        `${percent(columns.predicted_percentile[index] ?? 0)} of its round; ${secs(columns.best_secs[index])}`
      }
      onBrush={onBrush}
      onOpen={(index) => {
        onOpen(columns.number[index] ?? 0);
      }}
    />
  );
}

function percent(share: number): string {
  return `${Math.round(100 * share)}%`;
}
