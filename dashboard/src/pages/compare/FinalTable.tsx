import { Link } from "react-router";

import type { Job } from "../../api/client";
import type { Compared } from "../../api/lists";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { colorOf } from "../../components/colors";
import { Speed, TaskName } from "../../components/Figures";
import { count, digits, duration, interval, secs, speedup } from "../../format";
import { bySeed, fastest, median, ratioTo, type Group } from "./series";

interface Props {
  compared: readonly Compared[];
  isOneTask: boolean;
  onDrop: (id: string) => void;
}

const HEAD: readonly Column[] = [["Job"], ["Search"], ["Best", "number"]];
const RATIO: Column = ["Over the fastest", "number"];
const TAIL: readonly Column[] = [
  ["Speed-up", "number"],
  ["Speed", "number"],
  ["Trials", "number"],
  ["Time", "number"],
  ["Shown", "quiet"],
];

/** What each job ended with, the seeds of a group together. */
export function FinalTable({ compared, isOneTask, onDrop }: Props) {
  const base = isOneTask ? fastest(compared.map(({ job }) => job)) : undefined;
  return (
    <CardTable
      label="Final results"
      columns={base ? [...HEAD, RATIO, ...TAIL] : [...HEAD, ...TAIL]}
    >
      {bySeed(compared).map((group, place) => (
        <GroupRows key={group.key} {...{ group, place, base, onDrop }} />
      ))}
    </CardTable>
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
    <CardRow>
      <Cell className="whole">
        <span className="row" style={{ flexWrap: "nowrap" }}>
          <span className="swatch" style={{ background: colorOf(place) }} />
          <span>
            <TaskName shape={job.shape} target={job.target}>
              <Link to={`/jobs/${job.id}`}>{job.workload_name}</Link>
            </TaskName>
          </span>
        </span>
      </Cell>
      <Cell of="Search">
        {job.strategy}
        <span className="under">seed {job.seed}</span>
      </Cell>
      <Cell of="Best" className="number">
        <strong>{secs(job.best_secs)}</strong>
        <span className="under">{interval(job.best_interval)}</span>
      </Cell>
      {base && (
        <Cell of="Over the fastest" className="number">
          {ratio ? `${ratio.ratio.toFixed(3)}×` : "–"}
          <span className="under">
            {ratio?.interval && ratio.interval.map((end) => end.toFixed(3)).join(" to ")}
          </span>
        </Cell>
      )}
      <Cell of="Speed-up" className="number">
        {speedup(job.default_secs, job.best_secs)}
        <span className="under">from {secs(job.default_secs)}</span>
      </Cell>
      <Cell of="Speed" className="number">
        <Speed flops={job.flops} peak={job.peak_flops} secs={job.best_secs} />
      </Cell>
      <Cell of="Trials" className="number">
        {count(job.num_measured)}
      </Cell>
      <Cell of="Time" className="number">
        {spent === undefined ? "–" : duration(spent)}
      </Cell>
      <Cell className="whole">
        <button
          aria-label={`Leave out seed ${job.seed} of ${job.workload_name}`}
          onClick={() => onDrop(job.id)}
        >
          Leave out
        </button>
      </Cell>
    </CardRow>
  );
}

function SeedsRow({ group, hasRatio }: { group: Group; hasRatio: boolean }) {
  const times = group.members
    .map(({ job }) => job.best_secs)
    .filter((time) => time !== null)
    .sort((a, b) => a - b);
  const [least, greatest] = [times[0], times.at(-1)];
  return (
    <CardRow>
      <Cell isHeader className="whole" colSpan={2}>
        Median of {group.members.length} seeds
      </Cell>
      <Cell className="number whole">
        <strong>{secs(median(times))}</strong>
        <span className="under">
          {secs(least)} to {secs(greatest)}
        </span>
      </Cell>
      <Cell colSpan={hasRatio ? 6 : 5} className="quiet small">
        {least &&
          greatest &&
          `the slowest seed takes ${digits(greatest / least)}× the fastest's time`}
      </Cell>
    </CardRow>
  );
}
