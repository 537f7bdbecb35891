import type { UseQueryResult } from "@tanstack/react-query";

import type { Job } from "../../api/client";
import type { Summary } from "../../api/plots";
import { Answer } from "../../components/Answer";
import { MEANINGS } from "../../components/BestTime";
import { secs } from "../../format";
import type { SelectionHandle } from "./useSelection";

interface Props {
  job: Job;
  summary: UseQueryResult<Summary>;
  handle: SelectionHandle;
}

/** The outcome of each kind of schedule; its times are provisional, or estimated. */
export function SketchCard({ job, summary, handle }: Props) {
  const kind = job.best_kind === "estimated" ? "estimated" : "provisional";
  return (
    <section className="card">
      <h2>Sketches</h2>
      <Answer query={summary}>
        {({ sketches }) => (
          <table className="tight">
            <thead>
              <tr>
                <th>Sketch</th>
                <th className="number">Trials</th>
                <th className="number">Correct</th>
                <th className="number" title={MEANINGS[kind]}>
                  {kind === "estimated" ? "Shortest estimate" : "Shortest sample"}
                </th>
              </tr>
            </thead>
            <tbody>
              {sketches.map(({ name, count, num_right, best_secs }) => (
                <tr key={name} className={handle.selection.sketch === name ? "selected" : ""}>
                  <td className="mono long">{name}</td>
                  <td className="number">{count.toLocaleString("en")}</td>
                  <td className="number">{num_right.toLocaleString("en")}</td>
                  <td className="number">{secs(best_secs)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Answer>
    </section>
  );
}
