import { Link, useParams } from "react-router";

import type { Job } from "../api/client";
import { useJob, useTrial } from "../api/queries";
import { Answer, isUnknown } from "../components/Answer";
import { NotFound } from "../components/NotFound";
import { useTitle } from "../components/useTitle";
import { plural } from "../format";
import "../job.css";
import { UnknownJob } from "./JobPage";
import { CodeCard } from "./trial/CodeCard";
import { TrialView } from "./trial/TrialView";

/** One trial: its decisions, its measurement, and its code. */
export default function TrialPage() {
  const { id = "", number = "" } = useParams();
  const jobQuery = useJob(id);
  const job = jobQuery.data;
  const trial = useTrial(id, number);
  useTitle(job && `Trial ${number} of ${job.workload_name}`);
  if (isUnknown(jobQuery.error)) return <UnknownJob id={id} />;
  if (isUnknown(trial.error)) return <UnknownTrial id={id} number={number} job={job} />;
  return (
    <>
      <nav className="row" aria-label="Trials">
        <Link to={`/jobs/${id}`}>← {job ? `${job.workload_name}: all trials` : "All trials"}</Link>
        <Neighbours id={id} number={Number(number)} job={job} />
      </nav>
      <Answer query={trial}>
        {(found) => <TrialView key={found.number} trial={found} job={job} />}
      </Answer>
      <CodeCard id={id} number={number} />
    </>
  );
}

function UnknownTrial({ id, number, job }: { id: string; number: string; job: Job | undefined }) {
  return (
    <NotFound title="Trial not found">
      The job <Link to={`/jobs/${id}`}>{job?.workload_name ?? id}</Link> has no trial {number}
      {job && `: it has ${plural(job.num_measured, "trial")}, counted from 0`}.
    </NotFound>
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
