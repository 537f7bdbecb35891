import { Link, useParams } from "react-router";

import { useTrials } from "../api/queries";
import type { Trial } from "../api/client";
import { bestSecs } from "../charts/series";
import { Answer } from "../components/Answer";
import { Numbers } from "../components/Numbers";
import { secs } from "../format";

/** One trial: what was decided, and what came of it. */
export default function TrialPage() {
  const { id = "", number = "" } = useParams();
  return (
    <>
      <p>
        <Link to={`/jobs/${id}`}>← All trials of the job</Link>
      </p>
      <h1>Trial {number}</h1>
      <Answer query={useTrials(id, -1)}>
        {(trials) => {
          const trial = trials.find((t) => t.number === Number(number));
          return trial ? <TrialView trial={trial} /> : <p>This job has no such trial yet.</p>;
        }}
      </Answer>
    </>
  );
}

function TrialView({ trial }: { trial: Trial }) {
  return (
    <>
      {trial.error && (
        <div className="notice wrong">
          <strong>{trial.error.replaceAll("_", " ")}</strong>
          <pre>{trial.message}</pre>
        </div>
      )}
      <Numbers
        items={[
          ["Time", secs(bestSecs(trial))],
          [
            "Sketch",
            <span key="sketch" className="mono">
              {trial.sketch}
            </span>,
          ],
          ["Predicted score", trial.predicted === null ? "–" : trial.predicted.toFixed(3)],
          ["Largest error", trial.max_error === null ? "–" : trial.max_error.toExponential(1)],
          ["Build", secs(trial.build_secs)],
          ["Check", secs(trial.check_secs)],
          ["Timing", secs(trial.time_secs)],
        ]}
      />
      <section className="card">
        <h2>Samples</h2>
        <p className="mono">{trial.run_secs.map((s) => secs(s)).join("  ") || "none"}</p>
        <p className="quiet">by {trial.worker}</p>
      </section>
      <section className="card">
        <h2>Trace</h2>
        <pre>{JSON.stringify(trial.trace, null, 1)}</pre>
      </section>
    </>
  );
}
