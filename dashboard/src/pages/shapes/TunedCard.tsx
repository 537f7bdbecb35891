import { Link } from "react-router";

import type { Shapes } from "../../api/client";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { State } from "../../components/State";
import { count, secs } from "../../format";
import { sizesInWords } from "./sizes";

const COLUMNS: readonly Column[] = [
  ["Tuned size"],
  ["State"],
  ["Best", "number"],
  ["Trials", "number"],
];

/** The sizes that are tuned alone, each by a job. */
export function TunedCard({ tuned }: { tuned: Shapes["tuned"] }) {
  return (
    <CardTable label="Tuned sizes" columns={COLUMNS}>
      {tuned.map((size) => (
        <CardRow key={size.job_id}>
          <Cell of="Tuned size" className="mono">
            <Link to={`/jobs/${size.job_id}`}>{sizesInWords(size.sizes)}</Link>
          </Cell>
          <Cell of="State">
            <State of={size.state} />
          </Cell>
          <Cell of="Best" className="number">
            {secs(size.best_secs)}
          </Cell>
          <Cell of="Trials" className="number">
            {count(size.num_measured)}
          </Cell>
        </CardRow>
      ))}
    </CardTable>
  );
}
