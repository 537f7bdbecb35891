import { useSearchParams } from "react-router";

import { useModelList } from "../api/lists";
import { queryOf } from "../components/address";
import { Cell, type Column } from "../components/CardTable";
import { NAMES, SubjectList } from "../components/SubjectList";
import { count, secs, speedup } from "../format";

const WORDS = {
  title: "Models",
  label: "Models",
  path: "/models",
  one: "Model",
  many: "models",
  example: "resnet",
};
const COLUMNS: readonly Column[] = [
  ["Projected latency", "number"],
  ["Speed-up", "number"],
  ["Tasks", "number"],
];

/** All models that this service tunes or has tuned. */
export default function ModelsPage() {
  const [params] = useSearchParams();
  return (
    <SubjectList
      words={WORDS}
      query={useModelList(queryOf(params, NAMES))}
      columns={COLUMNS}
      cells={(model) => (
        <>
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
        </>
      )}
      hint={
        <p>
          A model is tuned as a whole: its programs share the trials. Start from Python:{" "}
          <code>{`lw.compile("model.onnx", trials=2000, url="${location.origin}")`}</code>
        </p>
      }
    />
  );
}
