import type { Shapes } from "../../api/client";
import { LinePlot } from "../../charts/LinePlot";
import { tickSecs } from "../../charts/ticks";
import { colorOf } from "../../components/colors";
import { intervals, onlyExtent } from "./sizes";

/** Which kernel runs which sizes, and their times, for a single extent. */
export function DispatchCard({ shapes }: { shapes: Shapes }) {
  const extent = onlyExtent(shapes.ranges);
  if (extent === null) return null;
  const parts = intervals(shapes.times, extent);
  const x = shapes.times.map(({ sizes }) => Math.log2(sizes[extent] ?? 1));
  const values = (of: (time: Shapes["times"][number]) => number | null) => shapes.times.map(of);
  const lines = [
    { label: "dispatched kernel", color: colorOf(0), values: values((t) => t.run_secs) },
    { label: "fastest of all kernels", color: colorOf(1), values: values((t) => t.best_secs) },
    {
      label: "tuned for the size alone",
      color: colorOf(2),
      values: values((t) => t.tuned_secs),
      hasDots: true,
    },
  ];
  return (
    <section className="card" aria-label="Kernels">
      <h2>Kernels by size</h2>
      <div className="stacked" aria-hidden="true">
        {parts.map(({ kernel, low, high, share }) => (
          <span
            key={low}
            title={`kernel ${kernel}: ${words(extent, low, high)}`}
            style={{ width: `${100 * share}%`, background: colorOf(kernel) }}
          />
        ))}
      </div>
      <ul className="legend small">
        {shapes.kernels.map(({ sketch }, kernel) => (
          <li key={kernel}>
            <span className="swatch" style={{ background: colorOf(kernel) }} />
            kernel {kernel} <span className="mono">{sketch}</span>:{" "}
            {parts
              .filter((part) => part.kernel === kernel)
              .map(({ low, high }) => words(extent, low, high))
              .join(", ")}
          </li>
        ))}
      </ul>
      <LinePlot
        label={`Time of a run by ${extent}, of the dispatched kernel and of the fastest one`}
        x={x}
        lines={lines}
        format={tickSecs}
        formatX={(value) => String(Math.round(2 ** value))}
        isWholeX
        isLog
      />
      <ul className="legend small">
        {lines.map(({ label, color }) => (
          <li key={label}>
            <span className="swatch" style={{ background: color }} />
            {label}
          </li>
        ))}
      </ul>
    </section>
  );
}

function words(extent: string, low: number, high: number): string {
  return low === high ? `${extent} = ${low}` : `${extent} = ${low} to ${high}`;
}
