import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useNavigate, useParams } from "react-router";

import { post, type Job, type Trial } from "../api/client";
import { followEvents } from "../api/events";
import { useJob, useTrials } from "../api/queries";
import { failures, timeSpent, type Span } from "../charts/series";
import { TrialPlot } from "../charts/TrialPlot";
import { Answer, Trouble } from "../components/Answer";
import { Numbers } from "../components/Numbers";
import { State } from "../components/State";
import { TrialTable } from "../components/TrialTable";
import { duration, secs, speedup } from "../format";

const NO_TRIALS: Trial[] = [];

/** One job, live. */
export default function JobPage() {
  const { id = "" } = useParams();
  const isLost = useLiveJob(id);
  return (
    <>
      {isLost && (
        <div className="notice wrong" role="alert">
          The service is away; this page goes on by itself when it is back.
        </div>
      )}
      <Answer query={useJob(id)}>{(job) => <JobView job={job} />}</Answer>
    </>
  );
}

/** Read the job again at each of its events; tells whether the service is away. */
function useLiveJob(id: string): boolean {
  const [isLost, setLost] = useState(false);
  const client = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    const renew = () => void client.invalidateQueries({ queryKey: ["job", id] });
    followEvents(id, renew, setLost, stop.signal).catch(renew);
    return () => {
      stop.abort();
    };
  }, [id, client]);
  return isLost;
}

function JobView({ job }: { job: Job }) {
  const query = useTrials(job.id, job.num_measured);
  const trials = query.data ?? NO_TRIALS;
  const [brushed, setBrushed] = useState<Span | null>(null);
  const [isLog, setLog] = useState(true);
  const navigate = useNavigate();
  const chosen = useMemo(
    () =>
      brushed ? trials.filter((t) => t.number >= brushed[0] && t.number <= brushed[1]) : trials,
    [trials, brushed],
  );
  return (
    <>
      <div className="row">
        <h1>{job.workload_name}</h1>
        <State of={job.state} />
        <span className="push">
          <StopButton job={job} />
        </span>
      </div>
      <p className="mono quiet">{job.target}</p>
      {job.error && (
        <div className="notice wrong" role="alert">
          <strong>The job failed.</strong>
          <pre>{job.error}</pre>
        </div>
      )}
      <Numbers items={figures(job)} />
      <progress value={job.num_measured} max={job.trials} aria-label="Trials done" />
      {query.error && <Trouble error={query.error} />}
      {trials.length === 0 ? (
        <p className="quiet">{query.isPending ? "Loading…" : "Nothing was measured yet."}</p>
      ) : (
        <>
          <section className="card">
            <div className="row">
              <h2>Trials</h2>
              <label className="push row">
                <input
                  type="checkbox"
                  checked={isLog}
                  onChange={(event) => {
                    setLog(event.target.checked);
                  }}
                />
                Logarithmic
              </label>
            </div>
            <TrialPlot
              trials={trials}
              isLog={isLog}
              brushed={brushed}
              onBrush={setBrushed}
              onOpen={(number) => void navigate(`/jobs/${job.id}/trials/${number}`)}
            />
          </section>
          <div className="columns">
            <FailureCard trials={chosen} />
            <SpentCard trials={chosen} />
          </div>
          <section className="card">
            <h2>
              {brushed ? `Trials ${brushed[0]} to ${brushed[1]}` : "All trials"} ({chosen.length})
            </h2>
            <TrialTable jobId={job.id} trials={chosen} />
          </section>
        </>
      )}
    </>
  );
}

function figures(job: Job) {
  const spent = elapsed(job);
  return [
    ["Best", bestTime(job)],
    ["Default", secs(job.default_secs)],
    ["Speed-up", speedup(job.default_secs, job.best_secs)],
    ["Trials", `${job.num_measured} / ${job.trials}`],
    ["Time", spent === null ? "–" : duration(spent)],
    ["Trials a second", spent ? (job.num_measured / spent).toFixed(1) : "–"],
    ["Search", `${job.strategy}, seed ${job.seed}`],
    ...(job.stop_reason ? ([["Ended by", job.stop_reason.replaceAll("_", " ")]] as const) : []),
  ] as const;
}

/** The best time, with its interval of 95% once the finish has measured it again. */
function bestTime(job: Job): string {
  if (!job.best_interval) return secs(job.best_secs);
  const [low, high] = job.best_interval;
  return `${secs(job.best_secs)} (${secs(low)} to ${secs(high)})`;
}

function elapsed(job: Job): number | null {
  if (!job.started_at) return null;
  const end = job.finished_at ? Date.parse(job.finished_at) : Date.now();
  return (end - Date.parse(job.started_at)) / 1000;
}

function StopButton({ job }: { job: Job }) {
  const client = useQueryClient();
  const stop = useMutation({
    mutationFn: () => post<Job>(`/jobs/${job.id}/cancel`),
    onSuccess: (read) => {
      client.setQueryData(["job", job.id], read);
    },
  });
  if (job.state !== "queued" && job.state !== "running") return null;
  return (
    <button
      disabled={stop.isPending}
      onClick={() => {
        stop.mutate();
      }}
    >
      Stop, keep the best
    </button>
  );
}

function FailureCard({ trials }: { trials: Trial[] }) {
  const found = failures(trials);
  return (
    <section className="card">
      <h2>Failures</h2>
      {found.length === 0 && <p>Every trial was built, ran, and was right.</p>}
      {found.map(({ kind, count, first }) => (
        <details key={kind}>
          <summary>
            {kind.replaceAll("_", " ")}: {count} of {trials.length}
          </summary>
          <pre>{first.message || "no message"}</pre>
        </details>
      ))}
    </section>
  );
}

function SpentCard({ trials }: { trials: Trial[] }) {
  const spent = timeSpent(trials);
  const total = spent.build + spent.check + spent.time || 1;
  return (
    <section className="card">
      <h2>Where the time goes</h2>
      <table>
        <tbody>
          {Object.entries(spent).map(([what, seconds]) => (
            <tr key={what}>
              <th scope="row">{what}</th>
              <td className="number">{secs(seconds)}</td>
              <td className="number">{((100 * seconds) / total).toFixed(0)} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
