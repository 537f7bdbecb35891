import type { UseQueryResult } from "@tanstack/react-query";
import { Link } from "react-router";

import type { Summary } from "../../api/plots";
import { Answer } from "../../components/Answer";
import { Meter } from "../../components/Figures";
import { percent } from "../../format";
import type { SelectionHandle } from "./useSelection";

interface Props {
  jobId: string;
  summary: UseQueryResult<Summary>;
  handle: SelectionHandle;
}

/** Failed trials by kind, each kind with the message of its first trial. */
export function FailureCard({ jobId, summary, handle }: Props) {
  return (
    <section className="card">
      <h2>Failures</h2>
      <Answer query={summary}>
        {({ failures, num_trials }) =>
          failures.length ? (
            failures.map((failure) => (
              <Failure
                key={failure.kind}
                jobId={jobId}
                failure={failure}
                total={num_trials}
                handle={handle}
              />
            ))
          ) : (
            <p className="quiet">No failures: every trial is correct.</p>
          )
        }
      </Answer>
    </section>
  );
}

interface FailureProps {
  jobId: string;
  failure: Summary["failures"][number];
  total: number;
  handle: SelectionHandle;
}

function Failure({ jobId, failure, total, handle }: FailureProps) {
  const { kind, count, first_number: first, first_message: message } = failure;
  const isChosen = handle.selection.outcome === kind;
  return (
    <details className="failure">
      <summary>
        <strong>{kind.replaceAll("_", " ")}</strong> {count.toLocaleString("en")} (
        {percent(count / total)})
        <Meter share={count / total} kind="bad" />
      </summary>
      <pre className="wrap">{message || "no message"}</pre>
      <p className="row">
        <Link to={`/jobs/${jobId}/trials/${first}`}>First: trial {first}</Link>
        <button
          aria-pressed={isChosen}
          onClick={() => {
            handle.select({ outcome: isChosen ? undefined : kind });
          }}
        >
          {isChosen ? "Show all trials" : "Show only these"}
        </button>
      </p>
    </details>
  );
}
