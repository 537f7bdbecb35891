import { useState } from "react";
import { Link } from "react-router";

import type { WorkloadCheck } from "../../api/lists";
import { Trouble } from "../../components/Answer";
import { Numbers } from "../../components/Numbers";
import { digits, large, operations } from "../../format";
import type { Mistake } from "./draft";
import type { TaskCheck } from "./useTaskChecks";

/** The parsed task, or its error and the place of the error. */
export function CheckResult({ name, check }: { name: string; check: TaskCheck }) {
  const [last, setLast] = useState<WorkloadCheck>();
  if (check.state === "legal" && check.check !== last) setLast(check.check);
  return (
    <section className="card" aria-label={name} aria-live="polite">
      <h2>Parsed program</h2>
      <Outcome check={check} last={last} />
    </section>
  );
}

function Outcome({ check, last }: { check: TaskCheck; last: WorkloadCheck | undefined }) {
  switch (check.state) {
    case "empty":
      return <p className="quiet">Enter an operator or a script, and a target.</p>;
    case "reading":
      // The last answer stays, marked, so that the page does not jump at each letter.
      return last ? <Legal check={last} isOld /> : <p className="quiet">Checking…</p>;
    case "legal":
      return <Legal check={check.check} />;
    case "refused":
      return <Refused mistake={check.mistake} />;
    case "unchecked":
      return <Trouble error={check.error} />;
  }
}

function Refused({ mistake }: { mistake: Mistake }) {
  const { line, column, detail } = mistake;
  return (
    <div className="notice wrong">
      <strong>{line ? `Line ${line}${column ? `, column ${column}` : ""}` : "Invalid task"}</strong>
      <pre className="wrap">{detail}</pre>
    </div>
  );
}

function Legal({ check, isOld = false }: { check: WorkloadCheck; isOld?: boolean }) {
  return (
    <div aria-busy={isOld}>
      <p className="row">
        <span className="task-name">{check.name}</span>
        {isOld ? <span className="quiet">Checking…</span> : <span className="good">✓ legal</span>}
        {check.is_tuned && (
          <Link to={`/best?text=${encodeURIComponent(check.name)}`}>tuned before</Link>
        )}
      </p>
      <Numbers
        items={[
          ["Work", large(check.flops, operations(check.dtype))],
          ["Data", large(check.bytes, "B")],
          [
            "Per byte",
            check.bytes ? `${digits(check.flops / check.bytes)} ${operations(check.dtype)}` : "–",
          ],
          ...spaceOf(check),
        ]}
      />
      {check.space?.num_schedules === 0 && (
        <p className="notice small">
          No schedule rule applies to this program on this target. The design space is empty, so a
          job measures only the default schedule.
        </p>
      )}
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
        <summary>Normalized script</summary>
        <pre className="code" tabIndex={0} role="region" aria-label="Script">
          {check.script}
        </pre>
      </details>
      <p className="quiet small mono long" style={{ margin: "0.6rem 0 0" }}>
        {check.target}
      </p>
    </div>
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
