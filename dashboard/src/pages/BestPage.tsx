import { Link, useSearchParams } from "react-router";

import { useBestList } from "../api/lists";
import { isNarrowed, queryOf } from "../components/address";
import { Answer } from "../components/Answer";
import { Empty } from "../components/Empty";
import { useTitle } from "../components/useTitle";
import { BestFilters } from "./best/BestFilters";
import { BestTable } from "./best/BestTable";

const NAMES = ["operator", "text", "target", "sort"] as const;

/** The fastest schedule known of each workload on each target; the search is in the address. */
export default function BestPage() {
  const [params] = useSearchParams();
  const query = useBestList(queryOf(params, NAMES));
  useTitle("Best schedules");
  return (
    <>
      <div className="page-head">
        <h1>Best schedules</h1>
      </div>
      <BestFilters />
      <Answer query={query}>
        {({ pages }) => {
          const schedules = pages.flatMap((page) => page.items);
          if (!schedules.length) return <NothingFound isNarrowed={isNarrowed(params)} />;
          return <BestTable schedules={schedules} />;
        }}
      </Answer>
      {query.hasNextPage && (
        <button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More schedules
        </button>
      )}
    </>
  );
}

function NothingFound({ isNarrowed }: { isNarrowed: boolean }) {
  return (
    <Empty title={isNarrowed ? "No matching schedule" : "No schedules yet"}>
      <p>
        {isNarrowed
          ? "Change the filters, or tune the workload: the best trial of a job becomes the best schedule."
          : "The best trial of each job appears here. Clients can fetch it."}
      </p>
      <span className="row">
        {isNarrowed && (
          <Link className="button" to="/best">
            All schedules
          </Link>
        )}
        <Link className="button main" to="/submit">
          New job
        </Link>
      </span>
    </Empty>
  );
}
