import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { color } from "../components/theme";
import { useThemeName } from "../components/useThemeName";
import { clocks, extent, linearTicks, logTicks, unrepeated, wholeTicks } from "./ticks";

export interface Line {
  label: string;
  values: readonly (number | null)[];
  color: string;
  /** Drawn as steps, since it holds until it changes. */
  isStepped?: boolean;
  /** Dots at the values, for few of them; alone if nothing is known between them. */
  hasDots?: boolean | "alone";
  isThin?: boolean;
  /** Whether it is broken where values are missing. */
  hasGaps?: boolean;
  /** What the line is between; drawn as a band. */
  band?: { low: readonly (number | null)[]; high: readonly (number | null)[] };
}

interface Props {
  /** What the plot shows, for those who cannot see it. */
  label: string;
  x: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  formatX?: (value: number) => string;
  /** Whether the horizontal axis counts something, so that only whole numbers are marked. */
  isWholeX?: boolean;
  isTime?: boolean;
  isLog?: boolean;
  height?: number;
}

/** Lines over a common axis, with bands around those that have one. */
export function LinePlot(props: Props) {
  const { label, height = 260 } = props;
  const place = useRef<HTMLDivElement>(null);
  useThemeName(); // its colours are in what is drawn
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(props, element.clientWidth, height), table(props), element);
    const resize = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
    };
  });
  return <div ref={place} className="plot" role="img" aria-label={label} />;
}

function table({ x, lines }: Props): uPlot.AlignedData {
  const columns = lines.flatMap(({ values, band }) =>
    band ? [values, band.high, band.low] : [values],
  );
  return [[...x], ...columns.map((column) => [...column])];
}

function options(props: Props, width: number, height: number): uPlot.Options {
  const { lines, format, formatX = String, isTime = false, isLog = false, isWholeX } = props;
  const reach = extent(lines.flatMap(valuesOf), isLog) ?? [0.1, 1];
  const axis = {
    stroke: color("--quiet"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1 },
    font: "12px sans-serif",
  };
  const words = (_: uPlot, ticks: (number | null)[]) =>
    unrepeated(ticks.map((tick) => (tick === null ? "" : format(tick))));
  return {
    width,
    height,
    legend: { show: false },
    scales: { x: { time: isTime }, y: { distr: isLog ? 3 : 1, range: reach } },
    axes: [
      {
        ...axis,
        ...(isTime ? { space: 75 } : {}),
        ...(isWholeX
          ? { splits: (made, _, low, high) => wholeTicks(low, high, Math.max(2, made.width / 80)) }
          : {}),
        values: (_, ticks) => (isTime ? clocks(ticks) : ticks.map(formatX)),
      },
      {
        ...axis,
        size: 68,
        splits: () => (isLog ? logTicks(...reach) : linearTicks(...reach, 6)),
        values: words,
      },
    ],
    series: [{}, ...lines.flatMap(seriesOf)],
    bands: bandsOf(lines),
    cursor: { drag: { x: true, y: false } },
  };
}

function valuesOf({ values, band }: Line): (number | null)[] {
  return band ? [...values, ...band.low, ...band.high] : [...values];
}

function seriesOf(line: Line): uPlot.Series[] {
  const stepped = line.isStepped && uPlot.paths.stepped?.({ align: 1 });
  const drawn: uPlot.Series = {
    label: line.label,
    stroke: line.color,
    width: line.hasDots === "alone" ? 0 : line.isThin ? 1 : 2,
    spanGaps: !line.hasGaps,
    points: { show: Boolean(line.hasDots), size: 6, fill: line.color },
    ...(stepped ? { paths: stepped } : {}),
  };
  const edge: uPlot.Series = { ...drawn, width: 0, points: { show: false } };
  return line.band ? [drawn, edge, edge] : [drawn];
}

function bandsOf(lines: readonly Line[]): uPlot.Band[] {
  const bands: uPlot.Band[] = [];
  let place = 1;
  for (const { band, color: stroke } of lines) {
    if (band) bands.push({ series: [place + 1, place + 2], fill: `${stroke}33` });
    place += band ? 3 : 1;
  }
  return bands;
}
