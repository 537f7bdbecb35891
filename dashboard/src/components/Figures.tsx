import type { ReactNode } from "react";

import { percent, rate } from "../format";

interface SpeedProps {
  flops: number | null | undefined;
  peak: number | null | undefined;
  secs: number | null | undefined;
  dtype: string | null | undefined;
}

const FEWER_OPERATIONS =
  "Above the peak: the schedule does fewer operations than the program, by Winograd's tiles";

/** How fast that is, and what share of the target's peak as a small bar. */
export function Speed({ flops, peak, secs, dtype }: SpeedProps) {
  const share = flops && peak && secs ? flops / secs / peak : null;
  return (
    <>
      {rate(flops, secs, dtype)}
      {share !== null && (
        <span className="under" title={share > 1.05 ? FEWER_OPERATIONS : undefined}>
          {percent(share, 0)} of peak
          <Meter share={share} kind="good" />
        </span>
      )}
    </>
  );
}

/** A bar of a share; the figure beside it says the same. */
export function Meter({ share, kind = "" }: { share: number; kind?: string }) {
  return (
    <span className={`meter ${kind}`} aria-hidden="true">
      <span style={{ width: `${Math.min(100, 100 * share)}%` }} />
    </span>
  );
}

interface NameProps {
  children: ReactNode;
  shape: string | null | undefined;
  target: string;
}

/** A workload in words: its name, its shape, and the target it is tuned for. */
export function TaskName({ children, shape, target }: NameProps) {
  return (
    <span className="task">
      <span className="task-name">
        {children} {shape && <span className="mono quiet">{shape}</span>}
      </span>
      <span className="under mono">{target}</span>
    </span>
  );
}
