import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useNavigate } from "react-router";

import { post, type Job, type JobCreate } from "../api/client";
import { Trouble } from "../components/Answer";
import { NO_WORKLOAD, WorkloadForm, workloadOf } from "../components/WorkloadForm";

/** Start a job. */
export function SubmitPage() {
  const [fields, setFields] = useState(NO_WORKLOAD);
  const [trials, setTrials] = useState(200);
  const [seed, setSeed] = useState(0);
  const navigate = useNavigate();
  // A request that is sent again, since its answer was lost, makes no second job.
  const key = useRef(crypto.randomUUID());
  const submission = useMutation({
    mutationFn: (request: JobCreate) =>
      post<Job>("/jobs", request, { "Idempotency-Key": key.current }),
    onSuccess: (job) => navigate(`/jobs/${job.id}`),
    onError: () => {
      key.current = crypto.randomUUID();
    },
  });
  return (
    <form
      className="card"
      style={{ display: "grid", gap: "0.9rem" }}
      onSubmit={(event) => {
        event.preventDefault();
        submission.mutate({
          workload: workloadOf(fields),
          target: fields.target,
          trials,
          seed,
          strategy: "evolutionary",
        });
      }}
    >
      <h1>New job</h1>
      <WorkloadForm fields={fields} onChange={setFields} />
      <div className="row">
        <Count label="Trials" value={trials} least={1} onChange={setTrials} />
        <Count label="Seed" value={seed} least={0} onChange={setSeed} />
      </div>
      {submission.error && <Trouble error={submission.error} />}
      <div>
        <button className="main" disabled={submission.isPending}>
          Start tuning
        </button>
      </div>
    </form>
  );
}

interface CountProps {
  label: string;
  value: number;
  least: number;
  onChange: (value: number) => void;
}

function Count({ label, value, least, onChange }: CountProps) {
  return (
    <label>
      {label}
      <input
        type="number"
        required
        min={least}
        value={value}
        onChange={(event) => {
          onChange(event.target.valueAsNumber);
        }}
      />
    </label>
  );
}
