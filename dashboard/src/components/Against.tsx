import type { components } from "../api/schema";
import { digits, percent, secs } from "../format";

export type Baseline = components["schemas"]["BaselineRead"];

/** How a kernel does beside the fastest library that was timed in turns with it. */
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

/** Many times the library's speed; only what the interval proves is called faster or slower. */
function Verdict({ baseline }: { baseline: Baseline }) {
  const { speedup, interval, verdict, kernel_set } = baseline;
  const ratio = `${digits(speedup)}× its speed`;
  const bounds = interval && (
    <span className="under">{`${digits(interval[0])} to ${digits(interval[1])}`}</span>
  );
  switch (verdict) {
    case "faster":
    case "slower":
      return (
        <>
          <strong className={verdict === "faster" ? "good" : "bad"}>
            {`${verdict === "faster" ? "▲" : "▼"} ${ratio}`}
          </strong>
          {bounds}
        </>
      );
    case "equal":
      return (
        <>
          as fast ({ratio}){bounds}
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
        <span title={`Its ${kernel_set ?? ""} kernels leave a part of this CPU unused`}>
          no claim: the library runs below this CPU's instruction set
        </span>
      );
  }
}

/** Which code the library used, in which setting, and what that reaches of the peak. */
export function howItRan({ kernel_set, setting, share_of_peak }: Baseline): string {
  const parts = [
    kernel_set && `${kernel_set} kernels`,
    setting,
    share_of_peak != null && `${percent(share_of_peak, 0)} of peak`,
  ];
  return parts.filter(Boolean).join(", ");
}
