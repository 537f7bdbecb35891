import type { CostModel } from "../../api/client";
import { LinePlot, type Line } from "../../charts/LinePlot";
import { colorOf } from "../../components/colors";
import { Legend } from "../../components/Legend";
import { figure } from "./quality";

const KINDS = [
  ["global model, on held-out tasks", (model: CostModel) => model.job_id === null],
  ["job model, on its own trials before they ran", (model: CostModel) => model.job_id !== null],
] as const;

/** The pairwise accuracy of each version; chance is one half. */
export function DriftPlot({ models }: { models: readonly CostModel[] }) {
  const lines: Line[] = KINDS.map(([label, isSuch], place) => ({
    label,
    color: colorOf(place),
    hasDots: true,
    values: models.map((model) =>
      isSuch(model) ? figure(model.quality, "pairwise_accuracy") : null,
    ),
  })).filter(({ values }) => values.some((value) => value !== null));
  return (
    <figure style={{ margin: 0 }}>
      <LinePlot
        label="Pairwise accuracy by version; the table below lists the values"
        x={models.map((model) => model.version)}
        lines={lines}
        format={(value) => `${Number((100 * value).toPrecision(4))} %`}
        isWholeX
        height={220}
      />
      <figcaption>
        <Legend lines={lines} />
        <span className="quiet small">Random guessing has an accuracy of 50 %.</span>
      </figcaption>
    </figure>
  );
}
