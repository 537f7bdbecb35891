import type { components } from "../api/schema";
import { digits, percent, secs } from "../format";

export type Baseline = components["schemas"]["BaselineRead"];

/** Compare a kernel with the fastest library, timed in alternating rounds. */
export function Against({ baseline }: { baseline: Baseline | null | undefined }) {
  if (!baseline) return <>–</>;
  return (
    <>
      <Verdict baseline={baseline} />
      <span className="under" title={`${baseline.version}: ${secs(baseline.run_secs)} a run`}>
        {baseline.version}
      </span>
      <span className="under">{howItRan(baseline)}</span>
    </>
  );
}

/** The kernel's speed relative to the library; faster or slower only if the interval proves it. */
function Verdict({ baseline }: { baseline: Baseline }) {
  const { speedup, interval, verdict, kernel_set } = baseline;
  const times = `${digits(speedup)}×`;
  const bounds = interval && (
    <span className="under">{`${digits(interval[0])} to ${digits(interval[1])}`}</span>
  );
  switch (verdict) {
    case "faster":
    case "slower":
      return (
        <>
          <strong className={verdict === "faster" ? "good" : "bad"}>
            {verdict === "faster" ? `▲ ${times} faster` : `▼ ${times} as fast`}
          </strong>
          {bounds}
        </>
      );
    case "equal":
      return (
        <>
          equally fast ({times}){bounds}
        </>
      );
    case "inconclusive":
      return (
        <>
          inconclusive ({interval ? "noisy host" : "too few rounds"}){bounds}
        </>
      );
    case "no_claim":
      return (
        <span title={`Its ${kernel_set ?? ""} kernels do not use all instructions of this CPU`}>
          not comparable: the library does not use this CPU's full instruction set
        </span>
      );
  }
}

/** The library's kernels, its setting, and its share of the peak. */
export function howItRan({ kernel_set, setting, share_of_peak }: Baseline): string {
  const parts = [
    kernel_set && `${kernel_set} kernels`,
    setting,
    share_of_peak != null && `${percent(share_of_peak, 0)} of peak`,
  ];
  return parts.filter(Boolean).join(", ");
}
