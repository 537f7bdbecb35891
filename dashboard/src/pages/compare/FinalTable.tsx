import { Link } from "react-router";

import type { Job } from "../../api/client";
import type { Compared } from "../../api/lists";
import { colorOf } from "../../components/colors";
import { Speed, TaskName } from "../../components/Figures";
import { digits, duration, interval, secs, speedup } from "../../format";
import { bySeed, fastest, median, ratioTo, type Group } from "./series";

interface Props {
  compared: readonly Compared[];
  isOneTask: boolean;
  onDrop: (id: string) => void;
}

/** What each job ended with, the seeds of a group together. */
export function FinalTable({ compared, isOneTask, onDrop }: Props) {
  const base = isOneTask ? fastest(compared.map(({ job }) => job)) : undefined;
  return (
    <div className="card flush scroll" tabIndex={0} role="region" aria-label="Final results">
      <table>
        <thead>
          <tr>
            <th>Job</th>
            <th>Search</th>
            <th className="number">Best</th>
            {base && <th className="number">Over the fastest</th>}
            <th className="number">Speed-up</th>
            <th className="number">Speed</th>
            <th className="number">Trials</th>
            <th className="number">Time</th>
            <th>
              <span className="quiet">Shown</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {bySeed(compared).map((group, place) => (
            <GroupRows key={group.key} {...{ group, place, base, onDrop }} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface GroupProps {
  group: Group;
  place: number;
  base: Job | undefined;
  onDrop: (id: string) => void;
}

function GroupRows({ group, place, base, onDrop }: GroupProps) {
  return (
    <>
      {group.members.map((one) => (
        <JobRow key={one.job.id} compared={one} {...{ place, base, onDrop }} />
      ))}
      {group.members.length > 1 && <SeedsRow group={group} hasRatio={base !== undefined} />}
    </>
  );
}

function JobRow({
  compared,
  place,
  base,
  onDrop,
}: Omit<GroupProps, "group"> & { compared: Compared }) {
  const { job, curve } = compared;
  const ratio = base && ratioTo(job, base);
  const spent = curve.secs.at(-1);
  return (
    <tr>
      <td>
        <span className="row" style={{ flexWrap: "nowrap" }}>
          <span className="swatch" style={{ background: colorOf(place) }} />
          <span>
            <TaskName shape={job.shape} target={job.target}>
              <Link to={`/jobs/${job.id}`}>{job.workload_name}</Link>
            </TaskName>
          </span>
        </span>
      </td>
      <td>
        {job.strategy}
        <span className="under">seed {job.seed}</span>
      </td>
      <td className="number">
        <strong>{secs(job.best_secs)}</strong>
        <span className="under">{interval(job.best_interval)}</span>
      </td>
      {base && (
        <td className="number">
          {ratio ? `${ratio.ratio.toFixed(3)}×` : "–"}
          <span className="under">
            {ratio?.interval && ratio.interval.map((end) => end.toFixed(3)).join(" to ")}
          </span>
        </td>
      )}
      <td className="number">
        {speedup(job.default_secs, job.best_secs)}
        <span className="under">from {secs(job.default_secs)}</span>
      </td>
      <td className="number">
        <Speed flops={job.flops} peak={job.peak_flops} secs={job.best_secs} />
      </td>
      <td className="number">{job.num_measured}</td>
      <td className="number">{spent === undefined ? "–" : duration(spent)}</td>
      <td>
        <button
          aria-label={`Leave out seed ${job.seed} of ${job.workload_name}`}
          onClick={() => onDrop(job.id)}
        >
          Leave out
        </button>
      </td>
    </tr>
  );
}

function SeedsRow({ group, hasRatio }: { group: Group; hasRatio: boolean }) {
  const times = group.members
    .map(({ job }) => job.best_secs)
    .filter((time) => time !== null)
    .sort((a, b) => a - b);
  const [least, greatest] = [times[0], times.at(-1)];
  return (
    <tr>
      <th scope="row" colSpan={2}>
        Median of {group.members.length} seeds
      </th>
      <td className="number">
        <strong>{secs(median(times))}</strong>
        <span className="under">
          {secs(least)} to {secs(greatest)}
        </span>
      </td>
      <td colSpan={hasRatio ? 6 : 5} className="quiet small">
        {least &&
          greatest &&
          `the slowest seed takes ${digits(greatest / least)}× the fastest's time`}
      </td>
    </tr>
  );
}
