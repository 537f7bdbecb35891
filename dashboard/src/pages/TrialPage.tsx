import { Link, useParams } from "react-router";

import type { Trial, TrialCode } from "../api/client";
import { useTrial, useTrialCode } from "../api/queries";
import { bestSecs } from "../charts/series";
import { Answer } from "../components/Answer";
import { Numbers } from "../components/Numbers";
import { SideBySide } from "../components/SideBySide";
import { Tabs } from "../components/Tabs";
import { secs } from "../format";

/** One trial: what was decided, what came of it, and the code that it is. */
export default function TrialPage() {
  const { id = "", number = "" } = useParams();
  return (
    <>
      <p>
        <Link to={`/jobs/${id}`}>← All trials of the job</Link>
      </p>
      <h1>Trial {number}</h1>
      <Answer query={useTrial(id, number)}>{(trial) => <TrialView trial={trial} />}</Answer>
      <section className="card">
        <h2>Code</h2>
        <Answer query={useTrialCode(id, number)}>{(code) => <Code code={code} />}</Answer>
      </section>
    </>
  );
}

function TrialView({ trial }: { trial: Trial }) {
  const samples = trial.run_secs.map((s) => secs(s)).join(", ");
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
      <p className="quiet">
        Samples: {samples || "none"}, by {trial.worker || "nobody"}
      </p>
    </>
  );
}

function Code({ code }: { code: TrialCode }) {
  return (
    <Tabs
      label="Code"
      tabs={[
        ["Program", <SideBySide key="program" before={code.before} after={code.after} />],
        ["Trace", <Text key="trace" name="Trace" text={code.trace} />],
        ["LLVM IR", <Text key="llvm" name="LLVM IR" text={code.llvm} />],
        ["Assembly", <Text key="assembly" name="Assembly" text={code.assembly} />],
      ]}
    />
  );
}

function Text({ name, text }: { name: string; text: string }) {
  return (
    <pre className="code" tabIndex={0} role="region" aria-label={name}>
      {text || "# nothing was changed"}
    </pre>
  );
}
