import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import { Link } from "react-router";

import type { Trial } from "../api/client";
import { bestSecs } from "../charts/series";
import { secs } from "../format";

const ROW_HEIGHT = 36;
const COLUMNS = [
  ["number", "Trial"],
  ["time", "Time"],
  ["sketch", "Sketch"],
  ["predicted", "Predicted"],
  ["build", "Build"],
  ["outcome", "Outcome"],
] as const;
type Column = (typeof COLUMNS)[number][0];

interface Props {
  jobId: string;
  trials: Trial[];
}

/** The trials of a job, of which only those in sight are in the page. */
export function TrialTable({ jobId, trials }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useState<{ by: Column; falls: boolean }>({
    by: "number",
    falls: false,
  });
  const rows = useMemo(() => {
    const sorted = trials.toSorted((a, b) => compare(keyOf(a, order.by), keyOf(b, order.by)));
    return order.falls ? sorted.reverse() : sorted;
  }, [trials, order]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
  });
  const shown = virtual.getVirtualItems();
  const above = shown[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <div ref={place} className="scroll trials" tabIndex={0} role="region" aria-label="Trials">
      <table aria-rowcount={rows.length}>
        <thead>
          <tr>
            {COLUMNS.map(([by, name]) => (
              <th key={by} aria-sort={order.by === by ? direction(order.falls) : "none"}>
                <button
                  className="plain"
                  onClick={() => {
                    setOrder({ by, falls: order.by === by && !order.falls });
                  }}
                >
                  {name}
                  {order.by === by && (order.falls ? " ▼" : " ▲")}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr aria-hidden="true" style={{ height: above }} />
          {shown.map(({ index }) => {
            const trial = rows[index];
            return trial && <Row key={trial.number} jobId={jobId} trial={trial} />;
          })}
          <tr aria-hidden="true" style={{ height: below }} />
        </tbody>
      </table>
    </div>
  );
}

function Row({ jobId, trial }: { jobId: string; trial: Trial }) {
  return (
    <tr style={{ height: ROW_HEIGHT }}>
      <td>
        <Link to={`/jobs/${jobId}/trials/${trial.number}`}>{trial.number}</Link>
      </td>
      <td className="nowrap">{secs(bestSecs(trial))}</td>
      <td className="mono">{trial.sketch}</td>
      <td>{trial.predicted === null ? "–" : trial.predicted.toFixed(3)}</td>
      <td className="nowrap">{secs(trial.build_secs)}</td>
      <td className={trial.error ? "bad" : ""}>{trial.error ?? "ok"}</td>
    </tr>
  );
}

function direction(falls: boolean): "descending" | "ascending" {
  return falls ? "descending" : "ascending";
}

function keyOf(trial: Trial, by: Column): number | string {
  switch (by) {
    case "number":
      return trial.number;
    case "time":
      return bestSecs(trial) ?? Infinity;
    case "sketch":
      return trial.sketch;
    case "predicted":
      return trial.predicted ?? -Infinity;
    case "build":
      return trial.build_secs;
    case "outcome":
      return trial.error ?? "";
  }
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
