import { Link, useParams } from "react-router";

import type { Model } from "../api/client";
import { useModel } from "../api/queries";
import { Answer } from "../components/Answer";
import { NotFound } from "../components/NotFound";
import { Numbers } from "../components/Numbers";
import { State } from "../components/State";
import { SubjectActions } from "../components/SubjectActions";
import { useTitle } from "../components/useTitle";
import { ago, count, secs, speedup } from "../format";
import { GraphCard } from "./model/GraphCard";
import { LatencyCard } from "./model/LatencyCard";
import { ShareCard } from "./model/ShareCard";
import { TaskCard } from "./model/TaskCard";

/** One model: its projected latency, its tasks, and its graph. */
export default function ModelPage() {
  const { id = "" } = useParams();
  const query = useModel(id);
  useTitle(query.data && `${query.data.name} (${query.data.state})`);
  return (
    <Answer query={query} unknown={<UnknownModel id={id} />}>
      {(model) => <ModelView model={model} />}
    </Answer>
  );
}

function UnknownModel({ id }: { id: string }) {
  return (
    <NotFound title="Model not found">
      This service has no model with the id <code>{id}</code>. Check the id, and check that this is
      the server that tuned the model.
    </NotFound>
  );
}

function ModelView({ model }: { model: Model }) {
  const numJobs = model.tasks.filter(({ job_id }) => job_id !== null).length;
  return (
    <>
      <div className="page-head">
        <h1>{model.name}</h1>
        <State of={model.state} />
        <span className="push row">
          <SubjectActions subject={model} query="model" many="models" />
          <Link className="button" to={`/?group=${model.group_id}`}>
            Jobs of this model
          </Link>
        </span>
      </div>
      <p className="quiet mono small">{model.target}</p>
      <Numbers
        items={[
          ["Projected latency", secs(model.latency_secs)],
          ["Default schedules", secs(model.default_secs)],
          ["Speed-up", speedup(model.default_secs, model.latency_secs)],
          ["Trials", `${count(model.num_measured)} / ${count(model.max_trials)}`],
          ["Tasks", `${count(model.num_tasks)}, ${count(numJobs)} with jobs`],
          ["Calls of kernels", count(model.num_steps)],
          ["Submitted", ago(model.created_at)],
        ]}
      />
      <div className="columns">
        <LatencyCard history={model.history} />
        <ShareCard tasks={model.tasks} />
      </div>
      <TaskCard tasks={model.tasks} />
      <GraphCard steps={model.steps} tasks={model.tasks} />
    </>
  );
}
