import { useMemo } from "react";

import type { Compared } from "../../api/lists";
import { LinePlot, type Line } from "../../charts/LinePlot";
import { tickSecs } from "../../charts/ticks";
import { colorOf } from "../../components/colors";
import { Legend } from "../../components/Legend";
import { count, digits, duration } from "../../format";
import {
  bandOf,
  bySeed,
  commonAxis,
  measured,
  valuesAt,
  type Axis,
  type Group,
  type Measure,
} from "./series";

interface Props {
  compared: readonly Compared[];
  axis: Axis;
  measure: Measure;
  isLog: boolean;
  /** Whether the default schedule is drawn too, which dwarfs what comes after. */
  hasDefault: boolean;
}

/** The shortest sample so far of each job; a median with a band where several differ by their seed alone. */
export function CurvePlot({ compared, axis, measure, isLog, hasDefault }: Props) {
  const groups = useMemo(() => bySeed(compared), [compared]);
  const x = useMemo(
    () =>
      commonAxis(
        compared.map(({ curve }) => curve),
        axis,
        hasDefault,
      ),
    [compared, axis, hasDefault],
  );
  const lines = groups.map((group, place) => lineOf(group, place, x, axis, measure));
  return (
    <figure style={{ margin: 0 }}>
      <LinePlot
        label={`Shortest sample so far of ${compared.length} jobs, by ${axis === "number" ? "trials" : "seconds"}; the table below lists the results`}
        x={x}
        lines={lines}
        isLog={isLog}
        height={340}
        format={measure === "time" ? tickSecs : (value) => `${digits(value)}×`}
        formatX={axis === "number" ? count : duration}
        isWholeX={axis === "number"}
      />
      <figcaption>
        <Legend lines={lines} />
      </figcaption>
    </figure>
  );
}

function lineOf(
  group: Group,
  place: number,
  x: readonly number[],
  axis: Axis,
  measure: Measure,
): Line {
  const rows = group.members.map(({ job, curve }) =>
    measured(valuesAt(curve, axis, x), job, measure),
  );
  const drawn = { color: colorOf(place), isStepped: true };
  const seeds = group.members.map(({ job }) => job.seed);
  if (rows.length === 1) {
    return { ...drawn, label: `${group.label}, seed ${seeds[0]}`, values: rows[0] ?? [] };
  }
  const { middle, low, high } = bandOf(rows);
  const label = `${group.label}: median of ${seeds.length} seeds, band from minimum to maximum`;
  return { ...drawn, label, values: middle, band: { low, high } };
}
