import { Link, useParams } from "react-router";

import type { Job } from "../api/client";
import { useJob, useTrial } from "../api/queries";
import { Answer } from "../components/Answer";
import "../job.css";
import { CodeCard } from "./trial/CodeCard";
import { TrialView } from "./trial/TrialView";

/** One trial: what was decided, what came of it, and the code that it is. */
export default function TrialPage() {
  const { id = "", number = "" } = useParams();
  const job = useJob(id).data;
  return (
    <>
      <nav className="row" aria-label="Trials">
        <Link to={`/jobs/${id}`}>← {job ? `${job.workload_name}: all trials` : "All trials"}</Link>
        <Neighbours id={id} number={Number(number)} job={job} />
      </nav>
      <Answer query={useTrial(id, number)}>
        {(trial) => <TrialView key={trial.number} trial={trial} job={job} />}
      </Answer>
      <CodeCard id={id} number={number} />
    </>
  );
}

interface NeighbourProps {
  id: string;
  number: number;
  job: Job | undefined;
}

function Neighbours({ id, number, job }: NeighbourProps) {
  const last = job ? job.num_measured - 1 : number;
  return (
    <span className="push row">
      {number > 0 && (
        <Link className="button" rel="prev" to={`/jobs/${id}/trials/${number - 1}`}>
          ← Trial {number - 1}
        </Link>
      )}
      {number < last && (
        <Link className="button" rel="next" to={`/jobs/${id}/trials/${number + 1}`}>
          Trial {number + 1} →
        </Link>
      )}
    </span>
  );
}
