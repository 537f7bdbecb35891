import { Fragment, useState } from "react";

import type { BestSummary } from "../../api/lists";
import { Speed, TaskName } from "../../components/Figures";
import { ago, interval, secs, speedup } from "../../format";
import { BestDetails } from "./BestDetails";

/** Best schedules, a row each, beside what the default schedule takes; a row opens to the rest. */
export function BestTable({ schedules }: { schedules: BestSummary[] }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <div className="card flush scroll" tabIndex={0} role="region" aria-label="Best schedules">
      <table>
        <thead>
          <tr>
            <th>Workload</th>
            <th className="number">Best</th>
            <th className="number wide">Speed</th>
            <th className="number wide">Default</th>
            <th className="number">Speed-up</th>
            <th className="wide">Found</th>
            <th className="wide">Toolchain</th>
            <th>
              <span className="wide">More</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {schedules.map((best) => {
            const key = `${best.workload_key}@${best.target}`;
            const isOpen = open === key;
            return (
              <Fragment key={key}>
                <Row best={best} isOpen={isOpen} onToggle={() => setOpen(isOpen ? null : key)} />
                {isOpen && (
                  <tr>
                    <td colSpan={8}>
                      <BestDetails best={best} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  best: BestSummary;
  isOpen: boolean;
  onToggle: () => void;
}

function Row({ best, isOpen, onToggle }: RowProps) {
  return (
    <tr>
      <td>
        <TaskName shape={best.shape} target={best.target}>
          {best.workload_name}
        </TaskName>
      </td>
      <td className="number">
        <strong>{secs(best.run_secs)}</strong>
        <span className="under">{interval(best.interval)}</span>
      </td>
      <td className="number wide">
        <Speed flops={best.flops} peak={best.peak_flops} secs={best.run_secs} />
      </td>
      <td className="number wide">{secs(best.default_secs)}</td>
      <td className="number">{speedup(best.default_secs, best.run_secs)}</td>
      <td className="wide nowrap">{ago(best.created_at)}</td>
      <td className="wide small mono quiet">{best.toolchain}</td>
      <td>
        <button
          aria-expanded={isOpen}
          aria-label={`Details of ${best.workload_name}`}
          onClick={onToggle}
        >
          {isOpen ? "▴" : "▾"}
        </button>
      </td>
    </tr>
  );
}
