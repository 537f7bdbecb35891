import { Link } from "react-router";

import type { Job } from "../../api/client";
import { Against } from "../../components/Against";
import { BestTime, Kind } from "../../components/BestTime";
import { Speed } from "../../components/Figures";
import { Numbers } from "../../components/Numbers";
import { State } from "../../components/State";
import { count, duration, stopReason, times } from "../../format";
import { JobActions } from "./JobActions";
import { isOver } from "./useLiveJob";
import { WaitNotice } from "./WaitNotice";
import { WebhookCard } from "./WebhookCard";

/** A job's name, result, progress and actions. */
export function JobHead({ job }: { job: Job }) {
  return (
    <>
      <div className="page-head">
        <h1>
          {job.workload_name} {job.shape && <span className="mono quiet">{job.shape}</span>}
        </h1>
        <State of={job.state} />
        <span className="push">
          <JobActions job={job} />
        </span>
      </div>
      <p className="mono quiet long">{job.target}</p>
      {job.error && (
        <div className="notice wrong" role="alert">
          <strong>The job failed.</strong>
          <pre className="wrap">{job.error}</pre>
        </div>
      )}
      <WaitNotice job={job} />
      <section className="card" aria-label="Result">
        <Numbers items={figures(job)} />
        {job.space && <p className="quiet small">{sentence(job.space.text)}</p>}
        {!isOver(job) && (
          <progress value={job.num_measured} max={job.max_trials} aria-label="Trials done" />
        )}
      </section>
      {job.webhook && <WebhookCard webhook={job.webhook} />}
    </>
  );
}

function figures(job: Job) {
  const spent = elapsed(job);
  return [
    ["Best", <Best key="best" job={job} />],
    [
      "Speed-up over the default",
      <span key="speedup">
        {times(job.speedup)}
        <Kind of={job.speedup_kind} />
      </span>,
    ],
    [
      "Default",
      <BestTime
        key="default"
        time={job.default_secs}
        kind={job.default_kind}
        interval={job.default_interval}
        isStrong={false}
      />,
    ],
    ...(job.baseline
      ? ([["vs library", <Against key="against" baseline={job.baseline} />]] as const)
      : []),
    ...(job.flops
      ? ([
          [
            "Speed",
            <Speed
              key="speed"
              flops={job.flops}
              peak={job.peak_flops}
              secs={job.best_secs}
              dtype={job.dtype}
            />,
          ],
        ] as const)
      : []),
    ["Trials", `${count(job.num_measured)} of ${count(job.max_trials)}`],
    ["Time", spent === null ? "–" : duration(spent)],
    ["Trials per second", job.trials_per_sec == null ? "–" : job.trials_per_sec.toFixed(1)],
    ["Search", `${job.strategy}, seed ${job.seed}`],
    ...(job.shapes_id
      ? ([
          [
            "Tuned for",
            <Link key="shapes" to={`/shapes/${job.shapes_id}`}>
              a range of sizes
            </Link>,
          ],
        ] as const)
      : []),
    ...(job.window ? ([["Window", job.window]] as const) : []),
    ...(job.owner ? ([["Owner", job.owner]] as const) : []),
    ...(job.stop_reason ? ([["Finished", stopReason(job.stop_reason)]] as const) : []),
  ] as const;
}

/** A claim as a sentence, on how the best stands among all schedules of the space. */
function sentence(claim: string): string {
  return `${claim.charAt(0).toUpperCase()}${claim.slice(1)}.`;
}

/** The best time, and the trial that the finish confirmed. */
function Best({ job }: { job: Job }) {
  const { id, best_secs, best_kind, best_interval, best_number } = job;
  return (
    <>
      <BestTime time={best_secs} kind={best_kind} interval={best_interval} />
      {best_number != null && (
        <span className="under">
          <Link to={`/jobs/${id}/trials/${best_number}`}>trial {best_number}</Link>
        </span>
      )}
    </>
  );
}

function elapsed(job: Job): number | null {
  if (!job.started_at) return null;
  const end = job.finished_at ? Date.parse(job.finished_at) : Date.now();
  return (end - Date.parse(job.started_at)) / 1000;
}
