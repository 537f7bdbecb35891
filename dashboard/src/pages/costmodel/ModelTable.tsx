import { Link } from "react-router";

import type { CostModel } from "../../api/client";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { ago, count, percent } from "../../format";
import { figure } from "./quality";

const COLUMNS: readonly Column[] = [
  ["Version", "number"],
  ["Source"],
  ["Pairs", "number"],
  ["First pick", "number"],
  ["Trained on", "number"],
  ["Held-out tasks", "number"],
  ["Features"],
  ["Data"],
  ["Made"],
];

interface Props {
  label: string;
  models: readonly CostModel[];
}

/** The versions of a kind of target, and the data that each was trained on. */
export function ModelTable({ label, models }: Props) {
  return (
    <CardTable label={`Versions of ${label}`} columns={COLUMNS}>
      {models.map((model) => (
        <Row key={model.version} model={model} />
      ))}
    </CardTable>
  );
}

function Row({ model }: { model: CostModel }) {
  const { quality } = model;
  return (
    <CardRow>
      <Cell of="Version" className="number">
        {model.version}
      </Cell>
      <Cell of="Source">
        {model.job_id ? <Link to={`/jobs/${model.job_id}`}>one job</Link> : "all jobs"}
      </Cell>
      <Cell of="Pairs" className="number">
        {percent(figure(quality, "pairwise_accuracy"))}
      </Cell>
      <Cell of="First pick" className="number">
        {percent(figure(quality, "top1"), 0)}
      </Cell>
      <Cell of="Trained on" className="number">
        {count(model.trained_on)}
        <span className="under">
          {model.num_tasks} {model.num_tasks === 1 ? "task" : "tasks"}
        </span>
      </Cell>
      <Cell of="Held-out tasks" className="number">
        {figure(quality, "held_out_tasks") ?? "–"}
      </Cell>
      <Cell of="Features">schema {model.feature_version}</Cell>
      <Cell of="Data" className="mono quiet">
        {model.fingerprint?.slice(0, 12) ?? "–"}
      </Cell>
      <Cell of="Made" className="nowrap">
        {ago(model.created_at)}
      </Cell>
    </CardRow>
  );
}
