import { Link, useSearchParams } from "react-router";

import { useBestList } from "../api/lists";
import { isNarrowed, queryOf } from "../components/address";
import { Trouble } from "../components/Answer";
import { Empty } from "../components/Empty";
import { BestFilters } from "./best/BestFilters";
import { BestTable } from "./best/BestTable";

const NAMES = ["operator", "text", "target", "sort"] as const;

/** The fastest schedule known of each workload on each target; the search is in the address. */
export function BestPage() {
  const [params] = useSearchParams();
  const query = useBestList(queryOf(params, NAMES));
  const found = query.data?.pages.flatMap((page) => page.items);
  return (
    <>
      <div className="page-head">
        <h1>Best schedules</h1>
      </div>
      <BestFilters />
      {query.error && <Trouble error={query.error} />}
      {!found && !query.error && <p className="quiet">Loading…</p>}
      {found?.length === 0 && <NothingFound isNarrowed={isNarrowed(params)} />}
      {found && found.length > 0 && <BestTable schedules={found} />}
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
    <Empty title={isNarrowed ? "No schedule is known of that" : "No schedule is known yet"}>
      <p>
        {isNarrowed
          ? "Search for less, or tune it: the best trial of a job becomes the best schedule."
          : "The best trial of each job is kept here, for every client to fetch."}
      </p>
      <span className="row">
        {isNarrowed && (
          <Link className="button" to="/best">
            All schedules
          </Link>
        )}
        <Link className="button main" to="/submit">
          Tune something
        </Link>
      </span>
    </Empty>
  );
}
