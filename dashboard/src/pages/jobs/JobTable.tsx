import { Link } from "react-router";

import type { Job } from "../../api/client";
import { Meter, Speed, TaskName } from "../../components/Figures";
import { Sparkline } from "../../components/Sparkline";
import { State } from "../../components/State";
import { ago, digits, secs, speedup } from "../../format";

interface Props {
  jobs: Job[];
  selected: ReadonlySet<string>;
  onSelect: (id: string) => void;
}

/** Jobs, a row each; those that are ticked can be compared. */
export function JobTable({ jobs, selected, onSelect }: Props) {
  return (
    <div className="card flush scroll" tabIndex={0} role="region" aria-label="Jobs">
      <table>
        <thead>
          <tr>
            <th>
              <span className="wide">Compare</span>
            </th>
            <th>Workload</th>
            <th className="wide">State</th>
            <th className="number">Best</th>
            <th className="number wide">Speed</th>
            <th className="number">Speed-up</th>
            <th className="number wide">Trials</th>
            <th className="wide">Progress</th>
            <th className="wide">Submitted</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Row
              key={job.id}
              job={job}
              isSelected={selected.has(job.id)}
              onSelect={() => onSelect(job.id)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  job: Job;
  isSelected: boolean;
  onSelect: () => void;
}

function Row({ job, isSelected, onSelect }: RowProps) {
  return (
    <tr className={isSelected ? "selected" : ""}>
      <td>
        <input
          type="checkbox"
          aria-label={`Compare ${job.workload_name}, seed ${job.seed}, ${ago(job.created_at)}`}
          checked={isSelected}
          onChange={onSelect}
        />
      </td>
      <td>
        <TaskName shape={job.shape} target={job.target}>
          <Link to={`/jobs/${job.id}`}>{job.workload_name}</Link>
        </TaskName>
        <span className="narrow">
          <State of={job.state} />
        </span>
      </td>
      <td className="wide">
        <State of={job.state} />
        <span className="under">{job.stop_reason?.replaceAll("_", " ")}</span>
      </td>
      <td className="number">
        <strong>{secs(job.best_secs)}</strong>
        {job.default_secs && <span className="under wide">from {secs(job.default_secs)}</span>}
      </td>
      <td className="number wide">
        <Speed flops={job.flops} peak={job.peak_flops} secs={job.best_secs} />
      </td>
      <td className="number">{speedup(job.default_secs, job.best_secs)}</td>
      <td className="number wide">
        {job.num_measured} / {job.trials}
        <span className="under">
          {job.trials_per_sec ? `${digits(job.trials_per_sec)} per s` : " "}
          <Meter share={job.num_measured / job.trials} />
        </span>
      </td>
      <td className="wide">
        <Sparkline values={job.sparkline ?? []} />
      </td>
      <td className="wide">
        {ago(job.created_at)}
        <span className="under">
          {job.owner && `by ${job.owner}`}
          {job.priority !== 0 && ` priority ${job.priority}`}
        </span>
      </td>
    </tr>
  );
}
