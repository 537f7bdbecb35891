import { Fragment, useState } from "react";

import type { BestSummary } from "../../api/lists";
import { Against } from "../../components/Against";
import { BestTime, Kind } from "../../components/BestTime";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { Speed, TaskName } from "../../components/Figures";
import { ago, times } from "../../format";
import { BestDetails } from "./BestDetails";

const COLUMNS: readonly Column[] = [
  ["Details"],
  ["Workload"],
  ["Best", "number"],
  ["vs library", "number"],
  ["Speed", "number"],
  ["Default", "number"],
  ["Speed-up", "number"],
  ["Found"],
];

/**
 * Best schedules, a row each, beside what a library and the default schedule take; a row opens to
 * the rest.
 */
export function BestTable({ schedules }: { schedules: BestSummary[] }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <CardTable label="Best schedules" columns={COLUMNS}>
      {schedules.map((best) => {
        const key = `${best.workload_key}@${best.target}`;
        const isOpen = open === key;
        return (
          <Fragment key={key}>
            <Row best={best} isOpen={isOpen} onToggle={() => setOpen(isOpen ? null : key)} />
            {isOpen && (
              <CardRow>
                <Cell colSpan={COLUMNS.length} className="whole">
                  <BestDetails best={best} />
                </Cell>
              </CardRow>
            )}
          </Fragment>
        );
      })}
    </CardTable>
  );
}

interface RowProps {
  best: BestSummary;
  isOpen: boolean;
  onToggle: () => void;
}

function Row({ best, isOpen, onToggle }: RowProps) {
  return (
    <CardRow>
      <Cell className="corner">
        <button
          aria-expanded={isOpen}
          aria-label={`Details of ${best.workload_name}`}
          onClick={onToggle}
        >
          {isOpen ? "▴" : "▾"}
        </button>
      </Cell>
      <Cell className="whole">
        <TaskName shape={best.shape} target={best.target}>
          {best.workload_name}
        </TaskName>
      </Cell>
      <Cell of="Best" className="number">
        <BestTime time={best.run_secs} kind={best.kind} interval={best.interval} />
      </Cell>
      <Cell of="vs library" className="number">
        <Against baseline={best.baseline} />
      </Cell>
      <Cell of="Speed" className="number">
        <Speed flops={best.flops} peak={best.peak_flops} secs={best.run_secs} dtype={best.dtype} />
      </Cell>
      <Cell of="Default" className="number">
        <BestTime time={best.default_secs} kind={best.default_kind} isStrong={false} />
      </Cell>
      <Cell of="Speed-up" className="number">
        {times(best.speedup)}
        <Kind of={best.speedup_kind} />
      </Cell>
      <Cell of="Found">
        {ago(best.created_at)}
        <span className="under mono">{best.toolchain}</span>
        {best.is_outdated && (
          <span className="under">Older code generator: tune again for a new time</span>
        )}
      </Cell>
    </CardRow>
  );
}
