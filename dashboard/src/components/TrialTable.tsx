import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import { Link } from "react-router";

import { OK, type TrialFacts } from "../charts/columns";
import { secs } from "../format";
import type { Order, Rows, SortColumn } from "./rows";

const ROW_HEIGHT = 34;
const COLUMNS: readonly (readonly [SortColumn, string, string])[] = [
  ["number", "Trial", "number"],
  ["time", "Time", "number"],
  ["sketch", "Sketch", ""],
  ["predicted", "Score", "number wide"],
  ["outcome", "Outcome", ""],
];

interface Props {
  jobId: string;
  rows: Rows;
  order: Order;
  onOrder: (order: Order) => void;
}

/** The trials of a job, of which only those in sight are in the page. */
export function TrialTable({ jobId, rows, order, onOrder }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.count ?? 0,
    getScrollElement: () => place.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });
  const shown = virtual.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? 0;
  const { see } = rows;
  useEffect(() => {
    see(first, last);
  });
  const above = shown[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <div ref={place} className="scroll trials" tabIndex={0} role="region" aria-label="Trials">
      <table aria-rowcount={(rows.count ?? 0) + 1}>
        <colgroup>
          {COLUMNS.map(([by, , style]) => (
            <col key={by} className={`of-${by} ${style}`} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {COLUMNS.map(([by, name, style]) => (
              <Heading key={by} by={by} name={name} style={style} order={order} onOrder={onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          <tr aria-hidden="true" style={{ height: above }} />
          {shown.map(({ index }) => (
            <Row key={index} jobId={jobId} index={index} {...known(rows.row(index))} />
          ))}
          <tr aria-hidden="true" style={{ height: below }} />
        </tbody>
      </table>
    </div>
  );
}

interface HeadingProps {
  by: SortColumn;
  name: string;
  style: string;
  order: Order;
  onOrder: (order: Order) => void;
}

function Heading({ by, name, style, order, onOrder }: HeadingProps) {
  const isSorted = order.by === by;
  const direction = order.falls ? "descending" : "ascending";
  return (
    <th className={style} aria-sort={isSorted ? direction : "none"}>
      <button
        className="plain"
        title={`Sort by ${name.toLowerCase()}`}
        onClick={() => {
          onOrder({ by, falls: isSorted && !order.falls });
        }}
      >
        {name}
        <span aria-hidden="true">{isSorted ? (order.falls ? " ▼" : " ▲") : " "}</span>
      </button>
    </th>
  );
}

function known(trial: TrialFacts | undefined): Partial<TrialFacts> {
  return trial ?? {};
}

type RowProps = Partial<TrialFacts> & { jobId: string; index: number };

// Plain values: a row that shows the same is not made again while the table is scrolled.
const Row = memo(function Row(props: RowProps) {
  const { jobId, index, number, best_secs, predicted, sketch, outcome } = props;
  if (number === undefined) {
    return (
      <tr aria-rowindex={index + 2} style={{ height: ROW_HEIGHT }}>
        <td className="quiet" colSpan={COLUMNS.length}>
          …
        </td>
      </tr>
    );
  }
  return (
    <tr aria-rowindex={index + 2} style={{ height: ROW_HEIGHT }}>
      <td className="number">
        <Link to={`/jobs/${jobId}/trials/${number}`}>{number}</Link>
      </td>
      <td className="number">{secs(best_secs)}</td>
      <td className="mono clip">{sketch}</td>
      <td className="number wide">{predicted == null ? "–" : predicted.toFixed(3)}</td>
      <td className={outcome === OK ? "" : "bad nowrap"}>{outcome?.replaceAll("_", " ")}</td>
    </tr>
  );
});
