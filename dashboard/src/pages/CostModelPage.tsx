import { Link } from "react-router";

import type { CostModel } from "../api/client";
import { useCostModels } from "../api/queries";
import { Answer } from "../components/Answer";
import { Empty } from "../components/Empty";
import { useTitle } from "../components/useTitle";
import { DriftPlot } from "./costmodel/DriftPlot";
import { ModelTable } from "./costmodel/ModelTable";
import { byLabel, newestOfStore } from "./costmodel/quality";
import { SplitTable } from "./costmodel/SplitTable";
import { TaskTable } from "./costmodel/TaskTable";

/** The cost model of each kind of target: how well it predicts, version by version. */
export default function CostModelPage() {
  useTitle("Cost model");
  return (
    <>
      <div className="page-head">
        <h1>Cost model</h1>
      </div>
      <Answer query={useCostModels()}>
        {({ items }) =>
          items.length ? (
            [...byLabel(items)].map(([label, models]) => (
              <Kind key={label} label={label} models={models} />
            ))
          ) : (
            <NoModels />
          )
        }
      </Answer>
    </>
  );
}

function NoModels() {
  return (
    <Empty title="No cost model yet">
      <p>
        Each job stores its model when it finishes. The service trains a model of all jobs in the
        background; to train one now, run <code>loopwright train</code>.
      </p>
      <Link className="button main" to="/submit">
        Start a job
      </Link>
    </Empty>
  );
}

function Kind({ label, models }: { label: string; models: CostModel[] }) {
  const [newest, before] = newestOfStore(models);
  return (
    <section aria-label={label}>
      <h2 className="mono">{label}</h2>
      <div className="columns">
        <div className="card">
          <h3>Ranking accuracy, by version</h3>
          <DriftPlot models={models} />
        </div>
        <div className="card">
          <h3>Held-out tasks{newest && `, version ${newest.version}`}</h3>
          {newest ? (
            <>
              <SplitTable model={newest} />
              <TaskTable model={newest} before={before} />
              <p className="quiet small" style={{ margin: "0.7rem 0 0" }}>
                Each task is evaluated with a model trained on the others. Pairs: the share ranked
                correctly.{before && ` Drift: the change since version ${before.version}.`} First
                pick: the speed of the top-ranked candidate relative to the best. Trials saved:
                relative to random order.
              </p>
            </>
          ) : (
            <p className="quiet">
              No global model yet. The service trains one after enough jobs; train it now with{" "}
              <code>loopwright train</code>.
            </p>
          )}
        </div>
      </div>
      <ModelTable label={label} models={models.toReversed()} />
    </section>
  );
}
