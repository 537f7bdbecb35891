import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "react-router";

import type { WorkloadCheck } from "../../api/lists";
import { Trouble } from "../../components/Answer";
import { Numbers } from "../../components/Numbers";
import { digits, large } from "../../format";
import type { Mistake } from "./draft";

interface Props {
  query: UseQueryResult<WorkloadCheck>;
  mistake: Mistake | null;
}

/** What the service read of a task, or what is wrong with it and where. */
export function CheckResult({ query, mistake }: Props) {
  return (
    <section className="card" aria-label="What was read" aria-live="polite">
      <h2>What was read</h2>
      <Read query={query} mistake={mistake} />
    </section>
  );
}

function Read({ query, mistake }: Props) {
  if (mistake) return <Wrong mistake={mistake} />;
  if (query.error) return <Trouble error={query.error} />;
  if (!query.data) return <p className="quiet">It is read as you type.</p>;
  return <Right check={query.data} />;
}

function Wrong({ mistake }: { mistake: Mistake }) {
  const { line, column, detail } = mistake;
  return (
    <div className="notice wrong">
      <strong>
        {line ? `Line ${line}${column ? `, column ${column}` : ""}` : "Not understood"}
      </strong>
      <pre className="wrap">{detail}</pre>
    </div>
  );
}

function Right({ check }: { check: WorkloadCheck }) {
  return (
    <>
      <p className="row">
        <span className="task-name">{check.name}</span>
        <span className="good">✓ legal</span>
        {check.is_tuned && (
          <Link to={`/best?text=${encodeURIComponent(check.name)}`}>tuned before</Link>
        )}
      </p>
      <Numbers
        items={[
          ["Work", large(check.flops, "FLOP")],
          ["Data", large(check.bytes, "B")],
          ["Per byte", check.bytes ? `${digits(check.flops / check.bytes)} FLOP` : "–"],
          ...spaceOf(check),
        ]}
      />
      <table className="small">
        <thead>
          <tr>
            <th>Parameter</th>
            <th>Shape</th>
            <th>Type</th>
            <th>Role</th>
          </tr>
        </thead>
        <tbody>
          {check.parameters.map((one) => (
            <tr key={one.name}>
              <td className="mono">{one.name}</td>
              <td className="mono">{one.shape.join(" × ") || "scalar"}</td>
              <td className="mono">{one.dtype}</td>
              <td>{one.role}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <details>
        <summary>The program as it was read</summary>
        <pre className="code">{check.script}</pre>
      </details>
      <p className="quiet small mono long" style={{ margin: "0.6rem 0 0" }}>
        {check.target}
      </p>
    </>
  );
}

function spaceOf({ space }: WorkloadCheck): [string, string][] {
  if (!space) return [];
  const about = space.is_exact ? "" : "about ";
  return [
    ["Schedules", about + large(space.num_schedules, "")],
    ["Sketches", String(space.sketches.length)],
  ];
}
