import { Link, useSearchParams } from "react-router";

import type { Job } from "../api/client";
import { useJobs } from "../api/queries";
import { Trouble } from "../components/Answer";
import { State } from "../components/State";
import { ago, secs, speedup } from "../format";

const STATES = ["queued", "running", "succeeded", "failed", "cancelled"];

/** All jobs, newest first; what is filtered stands in the address. */
export function JobsPage() {
  const [params, setParams] = useSearchParams();
  const state = params.get("state") ?? "";
  const query = useJobs(state);
  const jobs = query.data?.pages.flatMap((page) => page.items);
  return (
    <>
      <div className="row">
        <h1>Jobs</h1>
        <label className="push row">
          State
          <select
            value={state}
            onChange={(event) => {
              setParams(event.target.value ? { state: event.target.value } : {});
            }}
          >
            <option value="">all</option>
            {STATES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      {query.error && <Trouble error={query.error} />}
      {jobs && (jobs.length ? <JobTable jobs={jobs} /> : <NoJobs state={state} />)}
      {!jobs && !query.error && <p className="quiet">Loading…</p>}
      {query.hasNextPage && (
        <button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Older jobs
        </button>
      )}
    </>
  );
}

function NoJobs({ state }: { state: string }) {
  return (
    <p>
      There are no {state} jobs. {!state && "Start the first one: "}
      {state ? <Link to="/">See all of them</Link> : <Link to="/submit">New job</Link>}
    </p>
  );
}

function JobTable({ jobs }: { jobs: Job[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Jobs">
      <table>
        <thead>
          <tr>
            <th>Workload</th>
            <th>State</th>
            <th className="number">Best</th>
            <th className="number">Speed-up</th>
            <th className="number wide">Trials</th>
            <th className="wide">Target</th>
            <th className="wide">Created</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td>
                <Link to={`/jobs/${job.id}`}>{job.workload_name}</Link>
              </td>
              <td>
                <State of={job.state} />
              </td>
              <td className="number">{secs(job.best_secs)}</td>
              <td className="number">{speedup(job.default_secs, job.best_secs)}</td>
              <td className="number wide">
                {job.num_measured} / {job.trials}
              </td>
              <td className="wide mono">{job.target}</td>
              <td className="wide">{ago(job.created_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
