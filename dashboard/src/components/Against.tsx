import type { components } from "../api/schema";
import { digits, secs } from "../format";

export type Baseline = components["schemas"]["BaselineRead"];

/** How a kernel does beside the fastest library that was timed in turns with it. */
export function Against({ baseline }: { baseline: Baseline | null | undefined }) {
  if (!baseline) return <>–</>;
  return (
    <>
      <Ratio baseline={baseline} />
      <span className="under" title={`${baseline.version}: ${secs(baseline.run_secs)} a run`}>
        {baseline.version}
      </span>
    </>
  );
}

/** Many times the library's speed; only what the interval proves is called faster or slower. */
function Ratio({ baseline: { speedup, interval } }: { baseline: Baseline }) {
  const ratio = `${digits(speedup)}× its speed`;
  if (!interval) return <>{ratio}</>;
  const [low, high] = interval;
  const bounds = <span className="under">{`${digits(low)} to ${digits(high)}`}</span>;
  if (low <= 1 && high >= 1) {
    return (
      <>
        {ratio}
        {bounds}
      </>
    );
  }
  return (
    <>
      <strong className={low > 1 ? "good" : "bad"}>{`${low > 1 ? "▲" : "▼"} ${ratio}`}</strong>
      {bounds}
    </>
  );
}
