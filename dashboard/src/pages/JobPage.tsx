import { useParams } from "react-router";

import { useJob } from "../api/queries";
import { Answer } from "../components/Answer";
import "../job.css";
import { JobView } from "./job/JobView";
import { useLiveJob } from "./job/useLiveJob";

/** One job, live. */
export default function JobPage() {
  const { id = "" } = useParams();
  const query = useJob(id);
  const isLost = useLiveJob(id, query.data);
  return (
    <>
      {isLost && (
        <div className="notice wrong" role="alert">
          The service is away; this page goes on by itself when it is back.
        </div>
      )}
      <Answer query={query}>{(job) => <JobView key={job.id} job={job} />}</Answer>
    </>
  );
}
