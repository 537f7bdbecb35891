import { Link, useSearchParams } from "react-router";

import type { ModelSummary } from "../api/client";
import { useModelList } from "../api/lists";
import { isNarrowed, queryOf } from "../components/address";
import { AddressSelect, AddressText } from "../components/AddressFilters";
import { Answer } from "../components/Answer";
import { CardRow, CardTable, Cell, type Column } from "../components/CardTable";
import { Empty } from "../components/Empty";
import { Meter } from "../components/Figures";
import { State } from "../components/State";
import { useTitle } from "../components/useTitle";
import { ago, count, secs, speedup } from "../format";

const NAMES = ["text", "target", "sort"] as const;
const SORTS = [
  ["", "Newest first"],
  ["created_at", "Oldest first"],
  ["name", "By name"],
] as const;
const COLUMNS: readonly Column[] = [
  ["Model"],
  ["State"],
  ["Projected latency", "number"],
  ["Speed-up", "number"],
  ["Tasks", "number"],
  ["Trials", "number"],
  ["Submitted"],
];

/** All models that this service tunes or has tuned. */
export default function ModelsPage() {
  const [params] = useSearchParams();
  const query = useModelList(queryOf(params, NAMES));
  useTitle("Models");
  return (
    <>
      <div className="page-head">
        <h1>Models</h1>
      </div>
      <search className="card filters">
        <AddressText name="text" label="Text" placeholder="resnet" />
        <AddressText name="target" label="Target" />
        <AddressSelect name="sort" label="Sort" options={SORTS} />
      </search>
      <Answer query={query}>
        {({ pages }) => {
          const models = pages.flatMap((page) => page.items);
          if (!models.length) return <NoModels isNarrowed={isNarrowed(params)} />;
          return (
            <CardTable label="Models" columns={COLUMNS}>
              {models.map((model) => (
                <Row key={model.id} model={model} />
              ))}
            </CardTable>
          );
        }}
      </Answer>
      {query.hasNextPage && (
        <button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More models
        </button>
      )}
    </>
  );
}

function Row({ model }: { model: ModelSummary }) {
  return (
    <CardRow>
      <Cell className="whole">
        <span className="task">
          <Link to={`/models/${model.id}`}>{model.name}</Link>
          <span className="under mono">{model.target}</span>
        </span>
      </Cell>
      <Cell of="State">
        <State of={model.state} />
      </Cell>
      <Cell of="Projected latency" className="number">
        {secs(model.latency_secs)}
      </Cell>
      <Cell of="Speed-up" className="number">
        {speedup(model.default_secs, model.latency_secs)}
        {model.default_secs !== null && (
          <span className="under">from {secs(model.default_secs)}</span>
        )}
      </Cell>
      <Cell of="Tasks" className="number">
        {count(model.num_tasks)}
        <span className="under">{count(model.num_steps)} calls a run</span>
      </Cell>
      <Cell of="Trials" className="number">
        {count(model.num_measured)} / {count(model.max_trials)}
        <span className="under">
          <Meter share={model.num_measured / model.max_trials} />
        </span>
      </Cell>
      <Cell of="Submitted">
        {ago(model.created_at)}
        <span className="under">{model.owner && `by ${model.owner}`}</span>
      </Cell>
    </CardRow>
  );
}

function NoModels({ isNarrowed }: { isNarrowed: boolean }) {
  if (isNarrowed) {
    return (
      <Empty title="No matching models">
        <p>Remove a filter, or show all models.</p>
        <Link className="button" to="/models">
          All models
        </Link>
      </Empty>
    );
  }
  return (
    <Empty title="No models yet">
      <p>
        A model is tuned as a whole: its programs share the trials. Start from Python:{" "}
        <code>{`lw.compile("model.onnx", trials=2000, url="${location.origin}")`}</code>
      </p>
    </Empty>
  );
}
