import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { color } from "../components/theme";
import { useThemeName } from "../components/useThemeName";
import { nearest, paint, LANE_PX, type Near, type Points } from "./paintDots";
import type { Span } from "./selection";
import { extent, linearTicks, logTicks, wholeTicks } from "./ticks";

/** What an axis shows. */
export interface Axis {
  label: string;
  isLog?: boolean;
  /** Whether it counts something, so that only whole numbers are marked. */
  isWhole?: boolean;
  text: (value: number) => string;
}

interface Props extends Points {
  xAxis: Axis;
  yAxis: Axis;
  height: number;
  /** What the picture says, for who can't see it. */
  summary: string;
  /** The label of a point. */
  name: (index: number) => string;
  onBrush: (x: Span, y: Span | null) => void;
  onOpen: (index: number) => void;
}

/** Points on two axes: drag to select, point at one to learn what it is, click it to open it. */
export function Dots(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  const [near, setNear] = useState<Near | null>(null);
  const theme = useThemeName();
  const { height, summary, name } = props;
  const isLog = props.yAxis.isLog ?? false;
  const labels = `${props.xAxis.label}\n${props.yAxis.label}`;

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(element.clientWidth, isLog, latest), [[0], [0]], element);
    plot.current = made;
    const resize = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: latest.current.height });
    });
    resize.observe(element);
    const stop = follow(made, latest, setNear);
    return () => {
      stop();
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [height, isLog, theme, labels]);

  useEffect(() => {
    latest.current = props;
    plot.current?.setData([[0], [0]]);
  });

  return (
    <div className="plot" role="img" aria-label={summary}>
      <div ref={place} />
      {near && near.index < props.x.length && (
        <div className="tip" style={{ left: near.left, top: near.top }}>
          {name(near.index)}
        </div>
      )}
    </div>
  );
}

interface Latest {
  current: Props;
}

function options(width: number, isLog: boolean, latest: Latest): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: color("--quiet"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line"), width: 1, size: 5 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 20,
  };
  return {
    width,
    height: latest.current.height,
    legend: { show: false },
    padding: [LANE_PX + 4, 14, 0, 0],
    scales: {
      x: { time: false, range: () => extent(latest.current.x, false) ?? [0, 1] },
      y: { distr: isLog ? 3 : 1, range: () => reachOfY(latest.current, isLog) },
    },
    axes: [
      {
        ...axis,
        label: latest.current.xAxis.label,
        size: 30,
        splits: (made, _, low, high) => {
          const ticks = latest.current.xAxis.isWhole ? wholeTicks : linearTicks;
          return ticks(low, high, Math.max(2, made.width / 100));
        },
        values: (_, ticks) => ticks.map(latest.current.xAxis.text),
      },
      {
        ...axis,
        label: latest.current.yAxis.label,
        size: 62,
        // Without a time there is no scale, whose top mark would lie on the name of the lane.
        splits: (_, __, low, high) =>
          reachOfTimes(latest.current, isLog) === null
            ? []
            : isLog
              ? logTicks(low, high)
              : linearTicks(low, high, 6),
        filter: (_, ticks) => ticks,
        values: (_, ticks) => ticks.map(latest.current.yAxis.text),
      },
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    cursor: { points: { show: false }, drag: { setScale: false, x: true, y: true, uni: 40 } },
    hooks: {
      draw: [
        (made) => {
          paint(made, latest.current);
        },
      ],
      setSelect: [
        (made) => {
          brush(made, latest.current);
        },
      ],
    },
  };
}

function reachOfY(points: Points, isLog: boolean): [number, number] {
  return reachOfTimes(points, isLog) ?? [1, 10];
}

function reachOfTimes({ y, steps, level }: Points, isLog: boolean): [number, number] | null {
  const line = (steps ?? []).map(([, value]) => value);
  return extent([...y, ...line, level ?? null], isLog);
}

function brush(made: uPlot, { onBrush }: Props) {
  const { left, top, width, height } = made.select;
  if (width < 3) return;
  const x: Span = [made.posToVal(left, "x"), made.posToVal(left + width, "x")];
  const isBand = height >= made.over.clientHeight - 1;
  onBrush(x, isBand ? null : [made.posToVal(top + height, "y"), made.posToVal(top, "y")]);
  made.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
}

/** Name the point under the pointer, and open it at a click. */
function follow(made: uPlot, latest: Latest, found: (near: Near | null) => void): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const { over } = made;
  let pressedAt = 0;
  const listen = (kind: "mousemove" | "mouseleave" | "mousedown" | "click", act: Act) => {
    over.addEventListener(kind, act, { signal });
  };
  listen("mousemove", (event) => {
    found(event.buttons ? null : nearest(made, latest.current, event));
  });
  listen("mouseleave", () => {
    found(null);
  });
  listen("mousedown", (event) => {
    pressedAt = event.clientX;
  });
  listen("click", (event) => {
    if (Math.abs(event.clientX - pressedAt) > 3) return;
    const hit = nearest(made, latest.current, event);
    if (hit) latest.current.onOpen(hit.index);
  });
  return () => {
    stop.abort();
  };
}

type Act = (event: MouseEvent) => void;
