import type { Job, Trial } from "../../api/client";
import { BestTime } from "../../components/BestTime";
import { Numbers } from "../../components/Numbers";
import { ago, bytes, percent, rate, secs, speedup } from "../../format";
import { FailureNotice } from "./FailureNotice";
import { SamplesCard } from "./SamplesCard";

const OUTCOMES: Readonly<Record<string, string>> = {
  kept: "the job's best",
  tied: "tied with the best",
  slower: "slower than the best",
  failed: "failed",
};

/** The outcome of a trial. */
export function TrialView({ trial, job }: { trial: Trial; job: Job | undefined }) {
  return (
    <>
      <div className="page-head">
        <h1>Trial {trial.number}</h1>
        <span className={trial.error ? "state failed" : "state succeeded"}>
          {trial.error?.replaceAll("_", " ") ?? "correct"}
        </span>
        <span className="mono quiet">{trial.sketch}</span>
      </div>
      {trial.error && <FailureNotice kind={trial.error} message={trial.message} />}
      <section className="card" aria-label="Result">
        <Numbers items={figures(trial, job)} />
      </section>
      {trial.run_secs.length > 0 && job?.best_kind !== "estimated" && (
        <SamplesCard samples={trial.run_secs} job={job} />
      )}
    </>
  );
}

function figures(trial: Trial, job: Job | undefined) {
  const { provisional_secs: shortest, final } = trial;
  const fastest = job?.provisional_secs;
  const kind = job?.best_kind === "estimated" ? "estimated" : "provisional";
  return [
    ["Time", <BestTime key="time" time={shortest} kind={shortest === null ? null : kind} />],
    ...(final ? ([["Final comparison", <Final key="final" final={final} />]] as const) : []),
    ["vs default", speedup(job?.default_provisional_secs, shortest)],
    [
      "Speed relative to the fastest trial",
      shortest && fastest ? percent(fastest / shortest, 0) : "–",
    ],
    ["Speed", rate(job?.flops, shortest, job?.dtype)],
    ["Predicted score", trial.predicted === null ? "none" : trial.predicted.toFixed(3)],
    ["Largest error", trial.max_error === null ? "–" : trial.max_error.toExponential(1)],
    ...(trial.is_spot_checked ? ([["Checked", "64 rows, and sums of all"]] as const) : []),
    ["Build", secs(trial.build_secs)],
    ["Check", secs(trial.check_secs)],
    ["Timing", secs(trial.time_secs)],
    ...resources(trial),
    ...conditions(trial),
    ["Round", trial.round ?? "–"],
    [
      "Measured",
      <time key="at" dateTime={trial.created_at}>
        {ago(trial.created_at)}
      </time>,
    ],
    ["Worker", <Long key="worker" text={trial.worker || "none"} />],
    ["Toolchain", <Long key="toolchain" text={trial.toolchain || "unknown"} />],
  ] as const;
}

/** What the kernel uses of its device; nothing for a CPU. */
function resources({ resources: used }: Trial) {
  if (!used) return [];
  return [
    ["Registers of a thread", used.registers],
    ["Spills of a thread", bytes(used.spill_bytes)],
    ["Stack of a thread", bytes(used.stack_bytes)],
    ["Shared memory of a block", bytes(used.shared_bytes)],
    ["Occupancy", used.occupancy === null ? "–" : percent(used.occupancy, 0)],
    ["Bank conflicts", bankConflicts(used.bank_conflicts ?? null)],
  ] as const;
}

/** How the kernel was timed on a GPU; nothing for a CPU and for estimates. */
function conditions({ conditions: timed }: Trial) {
  if (!timed) return [];
  const { l2, sm_mhz: clock, watts, celsius, slowed_by: reasons } = timed;
  return [
    ["L2 cache", l2],
    ["Clock", clock === null ? "–" : `${clock} MHz`],
    ["Power", watts === null ? "–" : `${watts.toFixed(0)} W`],
    ["Temperature", celsius === null ? "–" : `${celsius} °C`],
    ...(reasons.length > 0 ? ([["Slowed by", reasons.join(", ")]] as const) : []),
  ] as const;
}

/** The accesses to banks over the least number of them; only the emulator counts them. */
function bankConflicts(ratio: number | null) {
  if (ratio === null) return "not counted on a GPU";
  return ratio === 1 ? "none" : `${ratio.toFixed(2)}× the accesses`;
}

/** The result of a trial in the job's final comparison. */
function Final({ final }: { final: NonNullable<Trial["final"]> }) {
  const { run_secs, interval, outcome } = final;
  return (
    <>
      <BestTime time={run_secs} kind={run_secs === null ? null : "confirmed"} interval={interval} />
      <span className="under">{OUTCOMES[outcome] ?? outcome}</span>
    </>
  );
}

function Long({ text }: { text: string }) {
  return <span className="mono long small">{text}</span>;
}
