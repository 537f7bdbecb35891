import type { Shapes } from "../../api/client";
import { LinePlot, type Line } from "../../charts/LinePlot";
import { tickSecs } from "../../charts/ticks";
import { colorOf } from "../../components/colors";
import { color } from "../../components/theme";
import { useThemeName } from "../../components/useThemeName";
import { intervals, onlyExtent } from "./sizes";

/** Which kernel runs which sizes, and their times, for a single extent. */
export function DispatchCard({ shapes }: { shapes: Shapes }) {
  useThemeName(); // its colours are in what is drawn
  const extent = onlyExtent(shapes.ranges);
  if (extent === null) return null;
  const parts = intervals(shapes.times, extent);
  const x = shapes.times.map(({ sizes }) => Math.log2(sizes[extent] ?? 1));
  const values = (of: (time: Shapes["times"][number]) => number | null) => shapes.times.map(of);
  // A part of the dispatched kernel's line for each kernel, in its colour; they meet at the ends.
  const parted = shapes.kernels.map((_, kernel) => ({
    label: `kernel ${kernel}`,
    color: colorOf(kernel),
    values: shapes.times.map(({ run_secs, ...time }, place) => {
      const isOfIt = time.kernel === kernel || shapes.times[place - 1]?.kernel === kernel;
      return isOfIt ? run_secs : null;
    }),
    hasGaps: true,
  }));
  const others: Line[] = [
    {
      label: "fastest of all kernels",
      color: color("--quiet"),
      values: values((t) => t.best_secs),
      isThin: true,
    },
    {
      label: "tuned for the size alone",
      color: color("--text"),
      values: values((t) => t.tuned_secs),
      hasDots: "alone",
    },
  ];
  return (
    <section className="card" aria-label="Kernels">
      <h2>Kernels by size</h2>
      <div className="stacked" aria-hidden="true">
        {parts.map(({ kernel, low, high, share }) => (
          <span
            key={low}
            title={`kernel ${kernel}: ${extent} = ${words(low, high)}`}
            style={{ width: `${100 * share}%`, background: colorOf(kernel) }}
          />
        ))}
      </div>
      <ul className="legend small">
        {shapes.kernels.map(({ sketch }, kernel) => (
          <li key={kernel}>
            <span className="swatch" style={{ background: colorOf(kernel) }} />
            <span>
              kernel {kernel}, <span className="mono">{sketch}</span>:{" "}
              {parts
                .filter((part) => part.kernel === kernel)
                .map(({ low, high }) => words(low, high))
                .join(", ")}
            </span>
          </li>
        ))}
      </ul>
      <LinePlot
        label={`Time of a run by ${extent}, of the dispatched kernel and of the fastest one`}
        x={x}
        lines={[...others, ...parted]}
        format={tickSecs}
        formatX={(value) => String(Math.round(2 ** value))}
        isWholeX
        isLog
      />
      <ul className="legend small">
        {others.map(({ label, color: stroke, hasDots }) => (
          <li key={label}>
            <span className={hasDots ? "swatch round" : "swatch"} style={{ background: stroke }} />
            {label}
          </li>
        ))}
      </ul>
    </section>
  );
}

function words(low: number, high: number): string {
  return low === high ? String(low) : `${low} to ${high}`;
}
