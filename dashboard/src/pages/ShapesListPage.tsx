import { Link, useSearchParams } from "react-router";

import type { ShapesSummary } from "../api/client";
import { useShapesList } from "../api/lists";
import { isNarrowed, queryOf } from "../components/address";
import { AddressSelect, AddressText } from "../components/AddressFilters";
import { Answer } from "../components/Answer";
import { CardRow, CardTable, Cell, type Column } from "../components/CardTable";
import { Empty } from "../components/Empty";
import { Meter } from "../components/Figures";
import { State } from "../components/State";
import { useTitle } from "../components/useTitle";
import { ago, count } from "../format";
import { rangesInWords, signedPercent } from "./shapes/sizes";

const NAMES = ["text", "target", "sort"] as const;
const SORTS = [
  ["", "Newest first"],
  ["created_at", "Oldest first"],
  ["name", "By name"],
] as const;
const COLUMNS: readonly Column[] = [
  ["Search"],
  ["State"],
  ["Range"],
  ["Kernels", "number"],
  ["Mean loss", "number"],
  ["Trials", "number"],
  ["Submitted"],
];

/** All searches over ranges of sizes on this service. */
export default function ShapesListPage() {
  const [params] = useSearchParams();
  const query = useShapesList(queryOf(params, NAMES));
  useTitle("Ranges");
  return (
    <>
      <div className="page-head">
        <h1>Searches over ranges</h1>
      </div>
      <search className="card filters">
        <AddressText name="text" label="Text" placeholder="matmul" />
        <AddressText name="target" label="Target" />
        <AddressSelect name="sort" label="Sort" options={SORTS} />
      </search>
      <Answer query={query}>
        {({ pages }) => {
          const found = pages.flatMap((page) => page.items);
          if (!found.length) return <NoShapes isNarrowed={isNarrowed(params)} />;
          return (
            <CardTable label="Ranges" columns={COLUMNS}>
              {found.map((shapes) => (
                <Row key={shapes.id} shapes={shapes} />
              ))}
            </CardTable>
          );
        }}
      </Answer>
      {query.hasNextPage && (
        <button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More searches
        </button>
      )}
    </>
  );
}

function Row({ shapes }: { shapes: ShapesSummary }) {
  return (
    <CardRow>
      <Cell className="whole">
        <span className="task">
          <Link to={`/shapes/${shapes.id}`}>{shapes.name}</Link>
          <span className="under mono">{shapes.target}</span>
        </span>
      </Cell>
      <Cell of="State">
        <State of={shapes.state} />
      </Cell>
      <Cell of="Range">{rangesInWords(shapes.ranges)}</Cell>
      <Cell of="Kernels" className="number">
        {shapes.num_kernels === null ? "–" : count(shapes.num_kernels)}
      </Cell>
      <Cell of="Mean loss" className="number">
        {signedPercent(shapes.loss)}
      </Cell>
      <Cell of="Trials" className="number">
        {count(shapes.num_measured)} / {count(shapes.max_trials)}
        <span className="under">
          <Meter share={shapes.num_measured / shapes.max_trials} />
        </span>
      </Cell>
      <Cell of="Submitted">
        {ago(shapes.created_at)}
        <span className="under">{shapes.owner && `by ${shapes.owner}`}</span>
      </Cell>
    </CardRow>
  );
}

function NoShapes({ isNarrowed }: { isNarrowed: boolean }) {
  if (isNarrowed) {
    return (
      <Empty title="No matching searches">
        <p>Remove a filter, or show all searches.</p>
        <Link className="button" to="/shapes">
          All searches
        </Link>
      </Empty>
    );
  }
  return (
    <Empty title="No searches over ranges yet">
      <p>
        A search over ranges finds one kernel for many sizes. Start from the command line:{" "}
        <code>{`loopwright tune matmul:M,512,512 --range M=1:512 --url ${location.origin}`}</code>
      </p>
    </Empty>
  );
}
