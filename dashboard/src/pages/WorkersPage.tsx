import type { Worker } from "../api/client";
import { useWorkers } from "../api/queries";
import { Answer } from "../components/Answer";
import { State } from "../components/State";
import { ago } from "../format";

/** The workers as the service last heard of them. */
export function WorkersPage() {
  return (
    <>
      <h1>Workers</h1>
      <Answer query={useWorkers()}>
        {({ items }) =>
          items.length ? (
            <div className="columns">
              {items.map((worker) => (
                <WorkerCard key={worker.name} worker={worker} />
              ))}
            </div>
          ) : (
            <p>No worker has reported yet. Workers start with the first job.</p>
          )
        }
      </Answer>
    </>
  );
}

function WorkerCard({ worker }: { worker: Worker }) {
  return (
    <section className="card">
      <h2 className="row">
        <span className="mono">{worker.name}</span> <State of={worker.state} />
      </h2>
      <p className="quiet">
        {worker.label} on {worker.host}, heard of {ago(worker.last_seen_at)}
      </p>
      <table>
        <tbody>
          {Object.entries(worker.facts ?? {}).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name.replaceAll("_", " ")}</th>
              <td className="mono long">
                {typeof value === "object" ? JSON.stringify(value) : String(value)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
