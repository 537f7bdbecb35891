/** What is painted on the canvas of a plot of dots, and which dot is under the pointer. */

import type uPlot from "uplot";

import { color } from "../components/theme";

/** Points to draw, one entry each in every column; one without `y` stands in the lane on top. */
export interface Points {
  x: readonly (number | null)[];
  y: readonly (number | null)[];
  /** Of each point, its place in `colors`. */
  group: readonly number[];
  colors: readonly string[];
  isChosen: (index: number) => boolean;
  /** A line of steps over the points, and a level to compare with. */
  steps?: readonly (readonly [number, number])[];
  level?: number | null;
}

export interface Near {
  index: number;
  left: number;
  top: number;
}

/** The height of the lane above the plot, where failures stand. */
export const LANE_PX = 14;
const NEAR_PX = 14;
const MANY = 1500;

export function paint(made: uPlot, points: Points) {
  const { ctx, bbox } = made;
  const lane = LANE_PX * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  if (points.x.some((x, index) => x !== null && points.y[index] == null)) nameLane(made);
  ctx.rect(bbox.left, bbox.top - lane, bbox.width, bbox.height + lane);
  ctx.clip();
  if (points.level != null) paintLevel(made, points.level);
  const chosen = points.x.map((_, index) => points.isChosen(index));
  ctx.globalAlpha = 0.2;
  paintDots(made, points, (index) => chosen[index] === false, [color("--quiet")]);
  ctx.globalAlpha = 0.85;
  paintDots(made, points, (index) => chosen[index] === true, points.colors);
  ctx.globalAlpha = 1;
  if (points.steps?.length) paintSteps(made, points.steps);
  ctx.restore();
}

function nameLane({ ctx, bbox }: uPlot) {
  ctx.fillStyle = color("--quiet");
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.fillText("failed", bbox.left - 8 * devicePixelRatio, bbox.top - 4 * devicePixelRatio);
}

function paintLevel(made: uPlot, level: number) {
  const { ctx, bbox } = made;
  const at = made.valToPos(level, "y", true);
  ctx.strokeStyle = color("--quiet");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, at);
  ctx.lineTo(bbox.left + bbox.width, at);
  ctx.stroke();
  ctx.setLineDash([]);
}

function paintDots(
  made: uPlot,
  { x, y, group }: Points,
  isWanted: (index: number) => boolean,
  colors: readonly string[],
) {
  const { ctx, bbox } = made;
  const pixel = devicePixelRatio;
  const radius = (x.length > MANY ? 1.6 : 2.6) * pixel;
  const lane = bbox.top - (LANE_PX - 2) * pixel;
  // All dots of a colour are one path: filling thousands one by one takes long.
  const paths = colors.map(() => new Path2D());
  x.forEach((across, index) => {
    const path = paths[colors.length === 1 ? 0 : (group[index] ?? 0)];
    if (across === null || !path || !isWanted(index)) return;
    const left = made.valToPos(across, "x", true);
    const down = y[index];
    if (down == null) {
      path.rect(left - pixel, lane, 2 * pixel, 8 * pixel);
      return;
    }
    const top = made.valToPos(down, "y", true);
    path.moveTo(left + radius, top);
    path.arc(left, top, radius, 0, 2 * Math.PI);
  });
  paths.forEach((path, index) => {
    ctx.fillStyle = colors[index] ?? "";
    ctx.fill(path);
  });
}

function paintSteps(made: uPlot, steps: readonly (readonly [number, number])[]) {
  const { ctx } = made;
  ctx.strokeStyle = color("--text");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  let before = 0;
  steps.forEach(([x, y], index) => {
    const left = made.valToPos(x, "x", true);
    const top = made.valToPos(y, "y", true);
    if (index === 0) ctx.moveTo(left, top);
    else {
      ctx.lineTo(left, before);
      ctx.lineTo(left, top);
    }
    before = top;
  });
  ctx.stroke();
}

/** The point under the pointer, if one is near. */
export function nearest(made: uPlot, { x, y }: Points, event: MouseEvent): Near | null {
  const box = made.over.getBoundingClientRect();
  const pointer = { left: event.clientX - box.left, top: event.clientY - box.top };
  let found: Near | null = null;
  let least = NEAR_PX ** 2;
  x.forEach((across, index) => {
    const down = y[index];
    if (across === null || down == null) return;
    const left = made.valToPos(across, "x");
    const top = made.valToPos(down, "y");
    const distance = (left - pointer.left) ** 2 + (top - pointer.top) ** 2;
    if (distance >= least) return;
    least = distance;
    found = { index, left: left + made.over.offsetLeft, top: top + made.over.offsetTop };
  });
  return found;
}
