import { useState } from "react";
import { Link, useSearchParams } from "react-router";

import { useJobList } from "../api/lists";
import { isNarrowed, queryOf } from "../components/address";
import { Answer } from "../components/Answer";
import { Empty } from "../components/Empty";
import { useTitle } from "../components/useTitle";
import { JobFilters } from "./jobs/JobFilters";
import { JobTable } from "./jobs/JobTable";

const NAMES = ["state", "text", "operator", "target", "owner", "tag", "group", "sort"] as const;

/** All jobs, updated live; the address holds the filters. */
export function JobsPage() {
  const [params] = useSearchParams();
  const query = useJobList(queryOf(params, NAMES));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useTitle("Jobs");
  return (
    <>
      <div className="page-head">
        <h1>{params.has("group") ? "Jobs of a group" : "Jobs"}</h1>
        {params.has("group") && <Link to="/">All jobs</Link>}
        <span className="push">
          <CompareLink ids={[...selected]} />
        </span>
      </div>
      <JobFilters />
      <Answer query={query}>
        {({ pages }) => {
          const jobs = pages.flatMap((page) => page.items);
          if (!jobs.length) return <NoJobs isNarrowed={isNarrowed(params)} />;
          return (
            <JobTable jobs={jobs} selected={selected} onSelect={(id) => setSelected(toggled(id))} />
          );
        }}
      </Answer>
      {query.hasNextPage && (
        <button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More jobs
        </button>
      )}
    </>
  );
}

function toggled(id: string) {
  return (known: ReadonlySet<string>): ReadonlySet<string> =>
    known.has(id) ? new Set([...known].filter((one) => one !== id)) : new Set([...known, id]);
}

function CompareLink({ ids }: { ids: string[] }) {
  if (ids.length < 2) {
    return <span className="quiet small">Select two or more jobs to compare them</span>;
  }
  return (
    <Link className="button" to={`/compare?jobs=${ids.join(",")}`}>
      Compare {ids.length} jobs
    </Link>
  );
}

function NoJobs({ isNarrowed }: { isNarrowed: boolean }) {
  if (isNarrowed) {
    return (
      <Empty title="No matching jobs">
        <p>Remove a filter, or show all jobs.</p>
        <Link className="button" to="/">
          All jobs
        </Link>
      </Empty>
    );
  }
  return (
    <Empty title="No jobs yet">
      <p>
        A job searches for the fastest schedule of a program on this machine. Start one here, or
        from a shell: <code>loopwright tune matmul:512,512,512 --url {location.origin}</code>
      </p>
      <Link className="button main" to="/submit">
        Start the first job
      </Link>
    </Empty>
  );
}
