import { Link } from "react-router";

import type { Job } from "../../api/client";
import { BestTime, Kind } from "../../components/BestTime";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { Meter, Speed, TaskName } from "../../components/Figures";
import { Sparkline } from "../../components/Sparkline";
import { State } from "../../components/State";
import { ago, count, digits, secs, stopReason, times } from "../../format";

interface Props {
  jobs: Job[];
  selected: ReadonlySet<string>;
  onSelect: (id: string) => void;
}

const COLUMNS: readonly Column[] = [
  ["Compare"],
  ["Workload"],
  ["State"],
  ["Best", "number"],
  ["Speed", "number"],
  ["Speed-up", "number"],
  ["Trials", "number"],
  ["Progress"],
  ["Submitted"],
];

/** Jobs, a row each; those that are ticked can be compared. */
export function JobTable({ jobs, selected, onSelect }: Props) {
  return (
    <CardTable label="Jobs" columns={COLUMNS}>
      {jobs.map((job) => (
        <Row
          key={job.id}
          job={job}
          isSelected={selected.has(job.id)}
          onSelect={() => onSelect(job.id)}
        />
      ))}
    </CardTable>
  );
}

/** The name and the tags of a job, as `first layer #nightly`. */
function jobTexts(job: Job): string {
  return [job.name, ...(job.tags ?? []).map((tag) => `#${tag}`)].filter(Boolean).join(" ");
}

/** Why a job ended, or the window that it waits for. */
function detailOf(job: Job): string | null {
  if (job.stop_reason) return stopReason(job.stop_reason);
  return job.state === "queued" && job.window ? `window ${job.window}` : null;
}

interface RowProps {
  job: Job;
  isSelected: boolean;
  onSelect: () => void;
}

function Row({ job, isSelected, onSelect }: RowProps) {
  return (
    <CardRow className={isSelected ? "selected" : ""}>
      <Cell className="corner">
        <input
          type="checkbox"
          aria-label={`Compare ${job.workload_name}, seed ${job.seed}, ${ago(job.created_at)}`}
          checked={isSelected}
          onChange={onSelect}
        />
      </Cell>
      <Cell className="whole">
        <TaskName shape={job.shape} target={job.target}>
          <Link to={`/jobs/${job.id}`}>{job.workload_name}</Link>
        </TaskName>
        {jobTexts(job) && <span className="under">{jobTexts(job)}</span>}
      </Cell>
      <Cell of="State">
        <State of={job.state} />
        <span className="under">{detailOf(job)}</span>
      </Cell>
      <Cell of="Best" className="number">
        <BestTime time={job.best_secs} kind={job.best_kind} />
      </Cell>
      <Cell of="Speed" className="number">
        <Speed flops={job.flops} peak={job.peak_flops} secs={job.best_secs} dtype={job.dtype} />
      </Cell>
      <Cell of="Speed-up" className="number">
        {times(job.speedup)}
        {job.default_secs && (
          <span className="under">
            from {secs(job.default_secs)}
            <Kind of={job.speedup_kind} />
          </span>
        )}
      </Cell>
      <Cell of="Trials" className="number">
        {count(job.num_measured)} / {count(job.max_trials)}
        <span className="under">
          {job.trials_per_sec ? `${digits(job.trials_per_sec)} per s` : " "}
          <Meter share={job.num_measured / job.max_trials} />
        </span>
      </Cell>
      <Cell className="spark">
        <Sparkline values={job.sparkline ?? []} />
      </Cell>
      <Cell of="Submitted">
        {ago(job.created_at)}
        <span className="under">
          {job.owner && `by ${job.owner}`}
          {job.priority !== 0 && ` priority ${job.priority}`}
        </span>
      </Cell>
    </CardRow>
  );
}
