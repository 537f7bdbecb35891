import { useParams } from "react-router";

import { useJob } from "../api/queries";
import { Answer } from "../components/Answer";
import { NotFound } from "../components/NotFound";
import { useTitle } from "../components/useTitle";
import "../job.css";
import { JobView } from "./job/JobView";
import { useLiveJob } from "./job/useLiveJob";

/** One job, live. */
export default function JobPage() {
  const { id = "" } = useParams();
  const query = useJob(id);
  const job = query.data;
  useTitle(job && `${job.workload_name} ${job.shape ?? ""} (${job.state})`);
  useLiveJob(id, job);
  return (
    <Answer query={query} unknown={<UnknownJob id={id} />}>
      {(found) => <JobView key={found.id} job={found} />}
    </Answer>
  );
}

/** The page of a job that this service does not have. */
export function UnknownJob({ id }: { id: string }) {
  return (
    <NotFound title="Job not found">
      This service has no job with the id <code>{id}</code>. Check the id, and check that this is
      the server that ran the job.
    </NotFound>
  );
}
