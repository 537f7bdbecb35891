import { Link } from "react-router";

import type { Job } from "../../api/client";
import type { Compared } from "../../api/lists";
import { BestTime, Kind, type TimeKind } from "../../components/BestTime";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { colorOf } from "../../components/colors";
import { Speed, TaskName } from "../../components/Figures";
import { count, digits, duration, secs, times } from "../../format";
import { bySeed, commonKind, fastest, median, ratioTo, timeOf, type Group } from "./series";

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
  ["Remove", "quiet"],
];

/** What each job ended with, the seeds of a group together. */
export function FinalTable({ compared, isOneTask, onDrop }: Props) {
  const jobs = compared.map(({ job }) => job);
  const kind = commonKind(jobs);
  const base = isOneTask ? fastest(jobs, kind) : undefined;
  return (
    <CardTable
      label="Final results"
      columns={base ? [...HEAD, RATIO, ...TAIL] : [...HEAD, ...TAIL]}
    >
      {bySeed(compared).map((group, place) => (
        <GroupRows key={group.key} {...{ group, place, base, kind, onDrop }} />
      ))}
    </CardTable>
  );
}

interface GroupProps {
  group: Group;
  place: number;
  base: Job | undefined;
  /** Of the times that ratios are of. */
  kind: TimeKind;
  onDrop: (id: string) => void;
}

function GroupRows({ group, place, base, kind, onDrop }: GroupProps) {
  return (
    <>
      {group.members.map((one) => (
        <JobRow key={one.job.id} compared={one} {...{ place, base, kind, onDrop }} />
      ))}
      {group.members.length > 1 && <SeedsRow {...{ group, kind }} hasRatio={base !== undefined} />}
    </>
  );
}

function JobRow({
  compared,
  place,
  base,
  kind,
  onDrop,
}: Omit<GroupProps, "group"> & { compared: Compared }) {
  const { job, curve } = compared;
  const ratio = base && ratioTo(job, base, kind);
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
        <BestTime time={job.best_secs} kind={job.best_kind} interval={job.best_interval} />
      </Cell>
      {base && (
        <Cell of="Over the fastest" className="number">
          {ratio ? `${ratio.ratio.toFixed(3)}×` : "–"}
          {ratio && !ratio.interval && <Kind of={kind} />}
          <span className="under">
            {ratio?.interval && ratio.interval.map((end) => end.toFixed(3)).join(" to ")}
          </span>
        </Cell>
      )}
      <Cell of="Speed-up" className="number">
        {times(job.speedup)}
        <span className="under">from {secs(job.default_secs)}</span>
        <Kind of={job.speedup_kind} />
      </Cell>
      <Cell of="Speed" className="number">
        <Speed flops={job.flops} peak={job.peak_flops} secs={job.best_secs} dtype={job.dtype} />
      </Cell>
      <Cell of="Trials" className="number">
        {count(job.num_measured)}
      </Cell>
      <Cell of="Time" className="number">
        {spent === undefined ? "–" : duration(spent)}
      </Cell>
      <Cell className="whole">
        <button
          aria-label={`Remove seed ${job.seed} of ${job.workload_name}`}
          onClick={() => onDrop(job.id)}
        >
          Remove
        </button>
      </Cell>
    </CardRow>
  );
}

interface SeedsProps {
  group: Group;
  kind: TimeKind;
  hasRatio: boolean;
}

function SeedsRow({ group, kind, hasRatio }: SeedsProps) {
  const sorted = group.members
    .map(({ job }) => timeOf(job, kind))
    .filter((time) => time !== null)
    .sort((a, b) => a - b);
  const [least, greatest] = [sorted[0], sorted.at(-1)];
  return (
    <CardRow>
      <Cell isHeader className="whole" colSpan={2}>
        Median of {group.members.length} seeds
      </Cell>
      <Cell className="number whole">
        <BestTime time={median(sorted)} kind={kind} />
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
