import { useState } from "react";
import { Link, useSearchParams } from "react-router";

import { useCompared, type Compared } from "../api/lists";
import { isUnknown, Loading, Refusal } from "../components/Answer";
import { Choice } from "../components/Choice";
import { Empty } from "../components/Empty";
import { Toggle } from "../components/Toggle";
import { useTitle } from "../components/useTitle";
import { CurvePlot } from "./compare/CurvePlot";
import { FinalTable } from "./compare/FinalTable";
import { isOneTask, type Axis, type Measure } from "./compare/series";

const MOST = 24;
const AXES = { number: "Trials", secs: "Seconds" } as const;
const MEASURES = { time: "Time", speedup: "Speed-up" } as const;

/** Two or more jobs side by side: how they got there, and what they found. */
export default function ComparePage() {
  const [params, setParams] = useSearchParams();
  const ids = [...new Set((params.get("jobs") ?? "").split(",").filter(Boolean))].slice(0, MOST);
  const queries = useCompared(ids);
  const found = queries.map((query) => query.data).filter((data) => data !== undefined);
  const unknown = ids.filter((_, place) => isUnknown(queries[place]?.error));
  const error = queries.map((query) => query.error).find((one) => one && !isUnknown(one)) ?? null;
  useTitle("Compare jobs");
  function drop(id: string) {
    setParams({ jobs: ids.filter((one) => one !== id).join(",") });
  }
  return (
    <>
      <div className="page-head">
        <h1>Compare</h1>
        <Link className="push" to="/">
          Choose other jobs
        </Link>
      </div>
      <Refusal error={error} />
      {unknown.map((id) => (
        <div key={id} className="notice wrong row" role="alert">
          <span>
            This service has no job with the id <code>{id}</code>.
          </span>
          <button onClick={() => drop(id)}>Remove</button>
        </div>
      ))}
      {ids.length === 0 && (
        <Empty title="Nothing to compare yet">
          <p>
            Select two or more jobs in the list. Jobs that differ only in their seed are drawn as
            one line with a band.
          </p>
          <Link className="button main" to="/">
            Choose jobs
          </Link>
        </Empty>
      )}
      {found.length + unknown.length < ids.length && !error && <Loading />}
      {found.length > 0 && <Comparison compared={found} onDrop={drop} />}
    </>
  );
}

interface Props {
  compared: Compared[];
  onDrop: (id: string) => void;
}

function Comparison({ compared, onDrop }: Props) {
  const isSame = isOneTask(compared.map(({ job }) => job));
  const [axis, setAxis] = useState<Axis>("number");
  const [chosen, setMeasure] = useState<Measure>();
  // Jobs come one after the other: it is known only of all whether times can be compared.
  const measure = chosen ?? (isSame ? "time" : "speedup");
  const [isLog, setLog] = useState(true);
  const [hasDefault, setDefault] = useState(false);
  return (
    <>
      <section className="card">
        <div className="page-head">
          <h2>Shortest sample so far</h2>
          <span className="push row">
            <Choice label="Horizontal axis" options={AXES} value={axis} onChange={setAxis} />
            <Choice
              label="Vertical axis"
              options={MEASURES}
              value={measure}
              onChange={setMeasure}
            />
            <span className="chips">
              <Toggle label="Logarithmic" isOn={isLog} onChange={setLog} />
              <Toggle label="Default schedule" isOn={hasDefault} onChange={setDefault} />
            </span>
          </span>
        </div>
        <CurvePlot {...{ compared, axis, measure, isLog, hasDefault }} />
      </section>
      <FinalTable compared={compared} isOneTask={isSame} onDrop={onDrop} />
    </>
  );
}
