import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { Trial } from "../api/client";
import { color } from "../components/theme";
import { secs } from "../format";
import { bestSoFar, bySketch, type Span } from "./series";

const HEIGHT = 300;
const DOTS = [
  "#3b82c4",
  "#d1761f",
  "#2f9e5b",
  "#a35bc4",
  "#c4466f",
  "#7a7f22",
  "#2a9d9d",
  "#8a6d5a",
];

interface Props {
  trials: Trial[];
  /** Whether times are drawn on a logarithmic axis. */
  isLog: boolean;
  brushed: Span | null;
  onBrush: (span: Span | null) => void;
  onOpen: (number: number) => void;
}

/** Every trial as a dot in its sketch's colour, and the best so far as a line; drag to select. */
export function TrialPlot({ trials, isLog, brushed, onBrush, onOpen }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const actions = useRef({ onBrush, onOpen });
  useEffect(() => {
    actions.current = { onBrush, onOpen };
  });
  const sketches = bySketch(trials);
  const names = sketches.map((sketch) => sketch.name).join("\n");

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(
      options(element.clientWidth, isLog, names.split("\n"), actions),
      [[]],
      element,
    );
    plot.current = made;
    const resize = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [isLog, names]);

  useEffect(() => {
    const numbers = trials.map((trial) => trial.number);
    plot.current?.setData([numbers, ...sketches.map((s) => s.secs), bestSoFar(trials)]);
  });

  return (
    <figure style={{ margin: 0 }}>
      <div ref={place} className="plot" aria-hidden="true" />
      <figcaption className="row quiet">
        Drag to select trials, double-click to open the nearest one; the table below holds the same.
        {brushed && (
          <button
            onClick={() => {
              onBrush(null);
            }}
          >
            Show all trials
          </button>
        )}
      </figcaption>
    </figure>
  );
}

interface Actions {
  current: Pick<Props, "onBrush" | "onOpen">;
}

function options(width: number, isLog: boolean, names: string[], actions: Actions): uPlot.Options {
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 } };
  return {
    width,
    height: HEIGHT,
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [axis, { ...axis, size: 70, values: (_, ticks) => ticks.map((t) => (t ? secs(t) : "")) }],
    series: [
      { label: "trial" },
      ...names.map((label, index) => ({
        label,
        stroke: DOTS[index % DOTS.length] ?? "gray",
        paths: () => null,
        points: { show: true, size: 5, fill: DOTS[index % DOTS.length] ?? "gray" },
        value: (_: uPlot, value: number | null) => secs(value),
      })),
      {
        label: "best so far",
        stroke: color("--text"),
        width: 2,
        points: { show: false },
        value: (_, value) => secs(value),
        ...(uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
      },
    ],
    cursor: { drag: { setScale: false, x: true, y: false } },
    hooks: {
      setSelect: [
        (made) => {
          if (made.select.width < 2) return;
          const from = made.posToVal(made.select.left, "x");
          const to = made.posToVal(made.select.left + made.select.width, "x");
          actions.current.onBrush([Math.ceil(from), Math.floor(to)]);
          made.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
      ready: [
        (made) => {
          made.over.addEventListener("dblclick", () => {
            const index = made.cursor.idx;
            const number = index == null ? undefined : made.data[0][index];
            if (number !== undefined) actions.current.onOpen(number);
          });
        },
      ],
    },
  };
}
