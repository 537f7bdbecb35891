import { useMemo } from "react";
import { Link } from "react-router";

import type { Model } from "../../api/client";
import { secs } from "../../format";
import { layered, widest } from "./layers";

interface Props {
  steps: Model["steps"];
  tasks: Model["tasks"];
}

const WIDTH = 208;
const HEIGHT = 40;
const GAP_X = 18;
const GAP_Y = 26;
const LETTERS = 26;
/** From the shortest call to the longest one. */
const HEAT = ["#7c8ba1", "#4c8bd6", "#8a6fd8", "#d1608e", "#e8590c"] as const;

/** The calls of kernels in layers, each below those that it reads from; colours are times. */
export function GraphCard({ steps, tasks }: Props) {
  const places = useMemo(() => layered(steps), [steps]);
  const longest = Math.max(0, ...tasks.map(({ best_secs }) => best_secs ?? 0));
  const columns = widest(places);
  const rows = Math.max(0, ...places.map(({ layer }) => layer + 1));
  const width = columns * (WIDTH + GAP_X) + GAP_X;
  const height = rows * (HEIGHT + GAP_Y) + GAP_Y;
  const left = (index: number) => GAP_X + (places[index]?.column ?? 0) * (WIDTH + GAP_X);
  const top = (index: number) => GAP_Y + (places[index]?.layer ?? 0) * (HEIGHT + GAP_Y);
  const middle = (index: number) => left(index) + WIDTH / 2;
  return (
    <section className="card" aria-label="Graph">
      <h2>Graph</h2>
      <p className="quiet small">
        Each box is a call of a kernel; it leads to the job of its task. The colour is the time of
        the call: {secs(0)} <Scale /> {secs(longest || null)}.
      </p>
      <div className="scroll graph" tabIndex={0} role="region" aria-label="Calls of kernels">
        <svg width={width} height={height} aria-hidden="true">
          {steps.map(({ after }, index) =>
            after.map((one) => (
              <path
                key={`${one}-${index}`}
                className="edge"
                d={curve(middle(one), top(one) + HEIGHT, middle(index), top(index))}
              />
            )),
          )}
        </svg>
        <ol style={{ width, height }}>
          {steps.map((step, index) => {
            const task = tasks[step.task];
            return (
              <li
                key={index}
                style={{
                  left: left(index),
                  top: top(index),
                  width: WIDTH,
                  height: HEIGHT,
                  borderLeftColor: heat(task?.best_secs, longest),
                }}
                title={`${step.name}: ${task?.operators ?? ""}`}
              >
                {task?.job_id ? (
                  <Link to={`/jobs/${task.job_id}`}>{shortened(task.operators)}</Link>
                ) : (
                  <span>{shortened(task?.operators ?? "")}</span>
                )}
                <span className="under">
                  {secs(task?.best_secs)} <span className="mono">{shortened(step.name)}</span>
                </span>
              </li>
            );
          })}
        </ol>
      </div>
    </section>
  );
}

function Scale() {
  return (
    <span className="heat" aria-hidden="true">
      {HEAT.map((color) => (
        <span key={color} style={{ background: color }} />
      ))}
    </span>
  );
}

/** The colour of a time; nothing for a task without one. */
function heat(value: number | null | undefined, longest: number): string {
  if (value == null || !longest) return "var(--line)";
  return HEAT[Math.round((value / longest) * (HEAT.length - 1))] ?? "";
}

function curve(x0: number, y0: number, x1: number, y1: number): string {
  const bend = (y1 - y0) / 2;
  return `M${x0},${y0} C${x0},${y0 + bend} ${x1},${y1 - bend} ${x1},${y1}`;
}

function shortened(text: string): string {
  return text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text;
}
