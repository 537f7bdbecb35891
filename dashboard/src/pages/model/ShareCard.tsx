import { Link } from "react-router";

import type { Model } from "../../api/client";
import { percent } from "../../format";
import { shares } from "./shares";

/** Which tasks the latency is made of: one bar, a part a task. */
export function ShareCard({ tasks }: { tasks: Model["tasks"] }) {
  const parts = shares(tasks);
  return (
    <section className="card" aria-label="Shares">
      <h2>Latency by task</h2>
      {parts.length ? (
        <>
          <div className="stacked" aria-hidden="true">
            {parts.map(({ label, color, share }) => (
              <span
                key={label}
                title={`${label}: ${percent(share)}`}
                style={{ width: `${100 * share}%`, background: color }}
              />
            ))}
          </div>
          <ul className="legend small column">
            {parts.map(({ label, color, share, jobId }) => (
              <li key={label}>
                <span className="swatch" style={{ background: color }} />
                <span className="mono nowrap">{percent(share)}</span>
                {jobId ? <Link to={`/jobs/${jobId}`}>{label}</Link> : label}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p className="quiet">No task has a time yet.</p>
      )}
    </section>
  );
}
