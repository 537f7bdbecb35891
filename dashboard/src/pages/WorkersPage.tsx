import { Link } from "react-router";

import { useWorkers } from "../api/queries";
import { Answer } from "../components/Answer";
import { Empty } from "../components/Empty";
import { useTitle } from "../components/useTitle";
import { WorkerCard } from "./workers/WorkerCard";

/** The workers as the service last heard of them, and how each does over time. */
export default function WorkersPage() {
  useTitle("Workers");
  return (
    <>
      <div className="page-head">
        <h1>Workers</h1>
      </div>
      <Answer query={useWorkers()}>
        {({ items }) =>
          items.length ? (
            <div className="columns">
              {items.map((worker) => (
                <WorkerCard key={worker.name} worker={worker} />
              ))}
            </div>
          ) : (
            <Empty title="No workers yet">
              <p>
                Workers start with the first job, run a self-test, and stop when the queue is empty.
              </p>
              <Link className="button main" to="/submit">
                Start a job
              </Link>
            </Empty>
          )
        }
      </Answer>
    </>
  );
}
