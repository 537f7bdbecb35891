import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ApiError, get, patch, post, type Job } from "../../api/client";
import type { WorkloadText } from "../../api/lists";
import { useCaller } from "../../api/queries";
import { CopyButton } from "../../components/CopyButton";
import { EndButtons, type Ending } from "../../components/EndButtons";
import { NotAllowed } from "../../components/NotAllowed";
import { snippet } from "../../components/snippet";
import { TellMe } from "./TellMe";
import { isOver } from "./useLiveJob";

/** What can be done to a job as it stands. */
export function JobActions({ job }: { job: Job }) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: (send: () => Promise<Job>) => send(),
    onSuccess: (read) => {
      client.setQueryData(["job", job.id], read);
    },
  });
  const [asked, setAsked] = useState<Ending>();
  const isEnded = isOver(job);
  const { maySubmit } = useCaller();
  const isBusy = act.isPending || !maySubmit;
  const path = `/jobs/${job.id}`;
  const end = (how: Ending) => {
    setAsked(how);
    act.mutate(() => post<Job>(`${path}/${how}`));
  };
  return (
    <span className="row">
      {!isEnded && <EndButtons isBusy={isBusy} asked={asked} onEnd={end} />}
      {canResume(job) && (
        <button
          className="main"
          disabled={isBusy}
          title="Continue the search; no trial is measured twice"
          onClick={() => {
            setAsked(undefined);
            act.mutate(() => post<Job>(`${path}/resume`));
          }}
        >
          Resume
        </button>
      )}
      <MoreTrials
        job={job}
        isBusy={isBusy}
        onGive={(max_trials) => {
          setAsked(undefined);
          act.mutate(() => patch<Job>(path, { max_trials }));
        }}
      />
      <TellMe job={job} />
      <CopyButton label="Copy client snippet" text={() => snippetOf(job)} />
      <NotAllowed to="stop, resume or extend jobs" />
      {act.error && (
        <span className="bad" role="alert">
          {act.error instanceof ApiError ? act.error.message : "The service does not respond."}
        </span>
      )}
    </span>
  );
}

interface MoreProps {
  job: Job;
  isBusy: boolean;
  onGive: (max_trials: number) => void;
}

function MoreTrials({ job, isBusy, onGive }: MoreProps) {
  const [more, setMore] = useState(100);
  return (
    <form
      className="row joined"
      onSubmit={(event) => {
        event.preventDefault();
        onGive(job.max_trials + more);
      }}
    >
      <input
        type="number"
        aria-label="Additional trials"
        min={1}
        max={100_000 - job.max_trials}
        value={more}
        onChange={(event) => {
          setMore(event.target.valueAsNumber || 1);
        }}
      />
      <button disabled={isBusy} title="Increase the trial limit; a finished job continues">
        Add trials
      </button>
    </form>
  );
}

/** Whether a job ended before its time. */
function canResume(job: Job): boolean {
  if (job.num_measured >= job.max_trials) return false;
  return (
    job.state === "cancelled" ||
    job.state === "failed" ||
    (job.state === "succeeded" && job.stop_reason === "stopped")
  );
}

async function snippetOf(job: Job): Promise<string> {
  const { script } = await get<WorkloadText>(`/workloads/${job.workload_key}`);
  return snippet(location.origin, script, job.target);
}
