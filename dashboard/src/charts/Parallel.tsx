import { useEffect, useRef, type PointerEvent } from "react";

import type { Decisions } from "../api/plots";
import { color } from "../components/theme";
import { useThemeName } from "../components/useThemeName";
import { useWidth } from "../components/useWidth";
import { secs } from "../format";
import { labelled, positions, shortNames, valuesBetween } from "./axes";
import { speedColor } from "./palette";
import type { Span } from "./selection";

interface Props {
  decisions: Decisions;
  summary: string;
  /** The values that are selected on an axis. */
  brushed: (name: string) => Span | undefined;
  isChosen: (row: number) => boolean;
  onBrush: (name: string, values: Span | undefined) => void;
}

const HEIGHT = 300;
const TOP = 16;
const FOOT = 74;
const LEFT = 92;
const RIGHT = 44;
const MIN_GAP = 62;
const MOST_LABELS = 9;
const MOST_BOLD = 150;

/** A line for each trial across the axes of its decisions, in the colour of its speed. */
export function Parallel({ decisions, summary, brushed, isChosen, onBrush }: Props) {
  const { place, width: given } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeName();
  const axes = decisions.decisions;
  const labels = shortNames(axes.map(({ name }) => name));
  const width = Math.max(given, LEFT + RIGHT + MIN_GAP * (axes.length - 1));
  const gap = axes.length > 1 ? (width - LEFT - RIGHT) / (axes.length - 1) : 0;

  useEffect(() => {
    const element = canvas.current;
    if (element && given) paint(element, width, gap, decisions, isChosen);
  }, [width, given, gap, decisions, isChosen, theme]);

  return (
    <div ref={place} className="scroll parallel" tabIndex={0} role="region" aria-label={summary}>
      <div className="axes" style={{ width, height: HEIGHT }}>
        <canvas ref={canvas} style={{ width, height: HEIGHT }} />
        <svg width={width} height={HEIGHT} aria-hidden="true">
          {axes.map(({ name, values }, index) => (
            <AxisLine
              key={name}
              name={name}
              label={labels[index] ?? name}
              values={values}
              left={LEFT + index * gap}
              brushed={brushed(name)}
              onBrush={(span) => {
                onBrush(name, span);
              }}
            />
          ))}
        </svg>
      </div>
    </div>
  );
}

interface AxisProps {
  name: string;
  label: string;
  values: readonly number[];
  left: number;
  brushed: Span | undefined;
  onBrush: (values: Span | undefined) => void;
}

const REACH = HEIGHT - TOP - FOOT;

function down(at: number): number {
  return TOP + (1 - at) * REACH;
}

/** One axis: drag along it to select values, click it to select all again. */
function AxisLine({ name, label, values, left, brushed, onBrush }: AxisProps) {
  const from = useRef<number | null>(null);
  const at = positions(values);
  const placeOf = (event: PointerEvent<SVGRectElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return 1 - (event.clientY - box.top - 8) / REACH;
  };
  const high = brushed && down(at.get(brushed[1]) ?? 1);
  const low = brushed && down(at.get(brushed[0]) ?? 0);
  return (
    <g>
      <line className="axis" x1={left} x2={left} y1={TOP} y2={TOP + REACH} />
      {labelled(values, MOST_LABELS).map((value) => (
        <text key={value} className="value" x={left + 5} y={down(at.get(value) ?? 0) + 4}>
          {value}
        </text>
      ))}
      {high !== undefined && low !== undefined && (
        <rect className="brushed" x={left - 6} width={12} y={high - 6} height={low - high + 12} />
      )}
      <text
        className="name"
        textAnchor="end"
        transform={`translate(${left + 4} ${HEIGHT - FOOT + 16}) rotate(-30)`}
      >
        {shorten(label)}
      </text>
      <rect
        className="grip"
        data-axis={name}
        x={left - 14}
        width={28}
        y={TOP - 8}
        height={REACH + 16}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          from.current = placeOf(event);
        }}
        onPointerUp={(event) => {
          if (from.current === null) return;
          const ends = [from.current, placeOf(event)].sort((a, b) => a - b) as [number, number];
          from.current = null;
          const isClick = ends[1] - ends[0] < 0.02;
          onBrush((!isClick && valuesBetween(values, ends)) || undefined);
        }}
      >
        <title>{name}: drag to select values</title>
      </rect>
    </g>
  );
}

function shorten(name: string): string {
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}

function paint(
  element: HTMLCanvasElement,
  width: number,
  gap: number,
  decisions: Decisions,
  isChosen: (row: number) => boolean,
) {
  const pixel = devicePixelRatio;
  element.width = width * pixel;
  element.height = HEIGHT * pixel;
  const ctx = element.getContext("2d");
  if (!ctx) return;
  ctx.scale(pixel, pixel);
  const axes = decisions.decisions.map(({ values }) => positions(values));
  const fastest = Math.min(...decisions.best_secs.map((found) => found ?? Infinity));
  const rows = decisions.rows.map((row, index) => ({
    row,
    isChosen: isChosen(index),
    speed: fastest / (decisions.best_secs[index] ?? Infinity),
    // Lines through the same values lie beside each other, so that many look like many.
    shift: ((index * 0.618) % 1) * 12 - 6,
  }));
  // The chosen above the others, and the fastest on top.
  rows.sort((a, b) => Number(a.isChosen) - Number(b.isChosen) || a.speed - b.speed);
  const faint = color("--quiet");
  // Many lines are drawn thinner, to keep them distinguishable.
  const numChosen = rows.filter((row) => row.isChosen).length;
  const weight = Math.min(1, Math.max(0.12, MOST_BOLD / numChosen));
  ctx.lineWidth = 1;
  for (const { row, isChosen: isMarked, speed, shift } of rows) {
    ctx.globalAlpha = isMarked ? weight * (0.4 + 0.6 * speed ** 4) : 0.05;
    ctx.strokeStyle = isMarked ? speedColor(speed) : faint;
    ctx.beginPath();
    axes.forEach((at, index) => {
      const y = down(at.get(row[index] ?? NaN) ?? 0) + shift;
      if (index === 0) ctx.moveTo(LEFT, y);
      else ctx.lineTo(LEFT + index * gap, y);
    });
    ctx.stroke();
  }
}

/** What the colours of the lines mean. */
export function SpeedScale({ decisions }: { decisions: Decisions }) {
  const found = decisions.best_secs.filter((value) => value !== null);
  if (!found.length) return null;
  return (
    <span className="row quiet">
      slow
      <span className="speed-scale" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span key={share} style={{ background: speedColor(share) }} />
        ))}
      </span>
      fast ({secs(Math.min(...found))})
    </span>
  );
}
