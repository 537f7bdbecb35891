import type { components } from "../api/schema";
import { interval as between, secs } from "../format";

export type TimeKind = components["schemas"]["TimeKind"];

/** What each statistic is, for the title of its label. */
export const MEANINGS: Readonly<Record<TimeKind, string>> = {
  provisional: "The shortest sample of one trial during the search",
  confirmed: "The median of the final comparison, with its 95% interval",
  estimated: "Computed for a GPU that is emulated; nothing was measured",
};

interface Props {
  time: number | null | undefined;
  kind: TimeKind | null | undefined;
  interval?: readonly number[] | null | undefined;
  isStrong?: boolean;
}

/** A time with the statistic that it is, and the interval of a confirmed one. */
export function BestTime({ time, kind, interval, isStrong = true }: Props) {
  return (
    <>
      {isStrong ? <strong>{secs(time)}</strong> : secs(time)}
      <Kind of={kind} />
      {interval && <span className="under">{between(interval)} (95%)</span>}
    </>
  );
}

/** The label of a statistic. */
export function Kind({ of: kind }: { of: TimeKind | null | undefined }) {
  if (!kind) return null;
  return (
    <span className="under" title={MEANINGS[kind]}>
      {kind}
    </span>
  );
}
