import type { Job } from "../../api/client";
import { extent, linearTicks, tickSecs } from "../../charts/ticks";
import { useWidth } from "../../components/useWidth";
import { percent, plural, secs } from "../../format";
import { spread } from "./samples";

const HEIGHT = 92;
const LINE = 44;
const SIDE = 28;
const NEAR = 0.8;

/** The samples of a trial on a line, with their middle half and the job's shortest sample. */
export function SamplesCard({ samples, job }: { samples: number[]; job: Job | undefined }) {
  const { place, width } = useWidth();
  const found = spread(samples);
  // The job's shortest sample is in the picture if it leaves room for the others.
  const known = job?.provisional_secs ?? null;
  const best = known !== null && known > NEAR * found.low ? known : null;
  const [low, high] = extent([...samples, best], false) ?? [0, 1];
  const at = (value: number) => SIDE + ((value - low) / (high - low)) * (width - 2 * SIDE);
  return (
    <section className="card">
      <h2>Samples</h2>
      <div ref={place}>
        <svg className="strip" width={width} height={HEIGHT} aria-hidden="true">
          <line className="axis" x1={SIDE} x2={width - SIDE} y1={LINE + 20} y2={LINE + 20} />
          {linearTicks(low, high, Math.max(4, width / 100)).map((tick) => (
            <text key={tick} x={at(tick)} y={LINE + 38} textAnchor="middle">
              {tickSecs(tick)}
            </text>
          ))}
          <rect
            className="middle"
            x={at(found.middle[0])}
            width={Math.max(1, at(found.middle[1]) - at(found.middle[0]))}
            y={LINE - 14}
            height={28}
          />
          <line
            className="median"
            x1={at(found.median)}
            x2={at(found.median)}
            y1={LINE - 16}
            y2={LINE + 16}
          />
          {best !== null && (
            <>
              <line className="best" x1={at(best)} x2={at(best)} y1={16} y2={LINE + 20} />
              <text
                x={at(best)}
                y={11}
                textAnchor={at(best) < 70 ? "start" : at(best) > width - 70 ? "end" : "middle"}
              >
                shortest of the job
              </text>
            </>
          )}
          {samples.map((sample, index) => (
            <circle key={index} cx={at(sample)} cy={LINE + ((index % 3) - 1) * 5} r={4} />
          ))}
        </svg>
      </div>
      <p className="quiet small">
        {plural(samples.length, "sample")} from {secs(found.low)} to {secs(found.high)}, median{" "}
        {secs(found.median)}; the middle half spans{" "}
        {percent((found.middle[1] - found.middle[0]) / found.median)} of it. All:{" "}
        {samples.map((sample) => secs(sample)).join(", ")}.
      </p>
    </section>
  );
}
