import { Link } from "react-router";

import type { Worker } from "../../api/client";
import { LinePlot } from "../../charts/LinePlot";
import { tickSecs } from "../../charts/ticks";
import { colorOf } from "../../components/colors";
import { Meter } from "../../components/Figures";
import { Numbers } from "../../components/Numbers";
import { State } from "../../components/State";
import { ago, percent, secs } from "../../format";
import { type Canary, canaryOf, verdict } from "./health";
import { sensors } from "./sensors";

/** One worker: what it does, how it did, and what it is. */
export function WorkerCard({ worker }: { worker: Worker }) {
  const canary = canaryOf(worker);
  const health = verdict(canary);
  const device = worker.device ?? null;
  const isEmulated = device?.is_emulated ?? false;
  return (
    <section className="card" aria-label={worker.name}>
      <div className="page-head">
        <h2 className="mono" style={{ margin: 0 }}>
          {worker.name}
        </h2>
        <State of={worker.state} />
      </div>
      <p className="quiet">
        {device && `${device.product || "Emulated on the CPU"}, `}
        <span className="mono">{worker.label}</span>, last seen {ago(worker.last_seen_at)}
      </p>
      <Numbers
        items={[
          isEmulated
            ? ["Times", "estimates"]
            : [
                "Host",
                <span key="host" className={health.kind}>
                  {health.text}
                </span>,
              ],
          ...(device && !isEmulated ? sensors(device) : []),
          ["Busy", <Busy key="busy" share={worker.utilisation ?? null} />],
          ["Jobs lost", worker.jobs_lost],
          ["Restarts", worker.restarts],
        ]}
      />
      <Doing worker={worker} />
      {!isEmulated && worker.facts?.refuses === undefined && (
        <CanaryPlot canary={canary} text={health.text} />
      )}
      <Facts facts={worker.facts ?? {}} />
    </section>
  );
}

function CanaryPlot({ canary, text }: { canary: Canary; text: string }) {
  return (
    <>
      <h3>Canary: the time of a reference kernel</h3>
      {canary.at.length > 1 ? (
        <LinePlot
          label={`The canary's time over the last ${canary.at.length} samples: ${text}`}
          x={canary.at.map((at) => Date.parse(at) / 1000)}
          lines={[{ label: "canary", values: canary.secs, color: colorOf(0), hasDots: true }]}
          format={tickSecs}
          isTime
          height={170}
        />
      ) : (
        <p className="quiet">
          {canary.secs.length ? `One sample: ${secs(canary.secs[0])}. ` : ""}
          The worker times it about once a minute during a job.
        </p>
      )}
    </>
  );
}

function Busy({ share }: { share: number | null }) {
  if (share === null) return "–";
  return (
    <>
      {percent(share, 0)} <Meter share={share} />
    </>
  );
}

function Doing({ worker: { task, state, facts } }: { worker: Worker }) {
  if (facts?.refuses !== undefined) {
    return <p className="warn">Refuses work: {String(facts.refuses)}</p>;
  }
  if (!task) {
    const why = {
      lost: "The process was killed, or its host is unreachable.",
      resting: "The worker starts with the next job.",
    };
    return <p>{why[state as keyof typeof why] ?? "Idle: waiting for a job."}</p>;
  }
  const name = <strong>{task.workload}</strong>;
  return (
    <p>
      Measures {task.candidates} candidates of{" "}
      {task.job_id ? <Link to={`/jobs/${task.job_id}`}>{name}</Link> : name} for{" "}
      <span className="mono">{task.target}</span>, started {ago(task.since)}.
    </p>
  );
}

function Facts({ facts }: { facts: Record<string, unknown> }) {
  return (
    <details>
      <summary>Versions and self-test</summary>
      <table className="small">
        <tbody>
          {flat(facts).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name.replaceAll("_", " ")}</th>
              <td className="mono long">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function flat(facts: Record<string, unknown>, prefix = ""): [string, string][] {
  return Object.entries(facts).flatMap(([name, value]): [string, string][] =>
    value !== null && typeof value === "object"
      ? flat(value as Record<string, unknown>, `${prefix}${name}: `)
      : [[prefix + name, String(value)]],
  );
}
