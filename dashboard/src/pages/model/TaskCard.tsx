import { Link } from "react-router";

import type { Model } from "../../api/client";
import { Kind } from "../../components/BestTime";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { Meter, Speed } from "../../components/Figures";
import { State } from "../../components/State";
import { count, percent, secs, speedup } from "../../format";

type Task = Model["tasks"][number];

const COLUMNS: readonly Column[] = [
  ["Task"],
  ["State"],
  ["Calls", "number"],
  ["Best", "number"],
  ["Share", "number"],
  ["Speed", "number"],
  ["Speed-up", "number"],
  ["Trials", "number"],
  ["Next gain", "number"],
];

/** The tasks of a model, those that take the most of its time first. */
export function TaskCard({ tasks }: { tasks: readonly Task[] }) {
  const sorted = tasks.toSorted((a, b) => (b.share ?? 0) - (a.share ?? 0) || a.number - b.number);
  return (
    <>
      <CardTable label="Tasks" columns={COLUMNS}>
        {sorted.map((task) => (
          <Row key={task.number} task={task} />
        ))}
      </CardTable>
      <p className="quiet small">
        A task is a program of the model; its share is that of all its calls in a run. Next gain:
        what the next trial is expected to save of a run; trials go where it is largest. Tasks that
        take little of the time have no job.
      </p>
    </>
  );
}

function Row({ task }: { task: Task }) {
  const peak =
    task.peak_share && task.best_secs ? task.flops / task.best_secs / task.peak_share : null;
  return (
    <CardRow>
      <Cell className="whole">
        <span className="task">
          <span className="task-name">
            {task.number}:{" "}
            {task.job_id ? (
              <Link to={`/jobs/${task.job_id}`}>{task.operators}</Link>
            ) : (
              task.operators
            )}
          </span>
          <span className="under mono">
            {task.shape} {task.dtype}
          </span>
        </span>
      </Cell>
      <Cell of="State">{task.state ? <State of={task.state} /> : <span>no job</span>}</Cell>
      <Cell of="Calls" className="number">
        {count(task.weight)}
      </Cell>
      <Cell of="Best" className="number">
        {secs(task.best_secs)}
        <Kind of={task.kind} />
      </Cell>
      <Cell of="Share" className="number">
        {percent(task.share)}
        {task.share !== null && <Meter share={task.share} />}
      </Cell>
      <Cell of="Speed" className="number">
        <Speed flops={task.flops} peak={peak} secs={task.best_secs} dtype={task.dtype} />
      </Cell>
      <Cell of="Speed-up" className="number">
        {speedup(task.default_secs, task.best_secs)}
      </Cell>
      <Cell of="Trials" className="number">
        {task.job_id ? count(task.num_measured) : "–"}
      </Cell>
      <Cell of="Next gain" className="number">
        {secs(task.next_gain)}
      </Cell>
    </CardRow>
  );
}
