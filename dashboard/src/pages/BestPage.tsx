import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { post, type Best } from "../api/client";
import { Trouble } from "../components/Answer";
import { Numbers } from "../components/Numbers";
import { NO_WORKLOAD, WorkloadForm, workloadOf } from "../components/WorkloadForm";
import { secs, speedup } from "../format";

/** Look up the fastest schedule known of a workload. */
export function BestPage() {
  const [fields, setFields] = useState(NO_WORKLOAD);
  const search = useMutation({
    mutationFn: () =>
      post<Best>("/schedules/best", { workload: workloadOf(fields), target: fields.target }),
  });
  return (
    <>
      <form
        className="card"
        style={{ display: "grid", gap: "0.9rem" }}
        onSubmit={(event) => {
          event.preventDefault();
          search.mutate();
        }}
      >
        <h1>Best schedules</h1>
        <WorkloadForm fields={fields} onChange={setFields} />
        <div>
          <button className="main" disabled={search.isPending}>
            Look up
          </button>
        </div>
      </form>
      {search.error && <Trouble error={search.error} />}
      {search.data && <Found best={search.data} />}
    </>
  );
}

function Found({ best }: { best: Best }) {
  return (
    <section className="card">
      <Numbers
        items={[
          ["Time", secs(best.run_secs)],
          ["Default", secs(best.default_secs)],
          ["Speed-up", speedup(best.default_secs, best.run_secs)],
          [
            "Found by",
            <Link key="trial" to={`/jobs/${best.job_id}/trials/${best.trial_number}`}>
              trial {best.trial_number}
            </Link>,
          ],
        ]}
      />
      <h2>Measured with</h2>
      <pre>{JSON.stringify(best.provenance, null, 2)}</pre>
    </section>
  );
}
