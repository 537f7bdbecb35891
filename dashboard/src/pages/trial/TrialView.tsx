import type { Job, Trial } from "../../api/client";
import { Numbers } from "../../components/Numbers";
import { ago, percent, rate, secs, speedup } from "../../format";
import { FailureNotice } from "./FailureNotice";
import { SamplesCard } from "./SamplesCard";
import { fastest } from "./samples";

/** What came of a trial. */
export function TrialView({ trial, job }: { trial: Trial; job: Job | undefined }) {
  return (
    <>
      <div className="page-head">
        <h1>Trial {trial.number}</h1>
        <span className={trial.error ? "state failed" : "state succeeded"}>
          {trial.error?.replaceAll("_", " ") ?? "right"}
        </span>
        <span className="mono quiet">{trial.sketch}</span>
      </div>
      {trial.error && <FailureNotice kind={trial.error} message={trial.message} />}
      <section className="card" aria-label="Result">
        <Numbers items={figures(trial, job)} />
      </section>
      {trial.run_secs.length > 0 && <SamplesCard samples={trial.run_secs} job={job} />}
    </>
  );
}

function figures(trial: Trial, job: Job | undefined) {
  const best = fastest(trial);
  return [
    ["Time", <strong key="time">{secs(best)}</strong>],
    ["Against the default", speedup(job?.default_secs, best)],
    ["Of the job's best speed", best && job?.best_secs ? percent(job.best_secs / best, 0) : "–"],
    ["Speed", rate(job?.flops, best)],
    ["Predicted score", trial.predicted === null ? "none" : trial.predicted.toFixed(3)],
    ["Largest error", trial.max_error === null ? "–" : trial.max_error.toExponential(1)],
    ["Build", secs(trial.build_secs)],
    ["Check", secs(trial.check_secs)],
    ["Timing", secs(trial.time_secs)],
    ["Round", trial.round ?? "–"],
    [
      "Measured",
      <time key="at" dateTime={trial.created_at}>
        {ago(trial.created_at)}
      </time>,
    ],
    ["Worker", <Long key="worker" text={trial.worker || "none"} />],
    ["Toolchain", <Long key="toolchain" text={trial.toolchain || "not known"} />],
  ] as const;
}

function Long({ text }: { text: string }) {
  return <span className="mono long small">{text}</span>;
}
