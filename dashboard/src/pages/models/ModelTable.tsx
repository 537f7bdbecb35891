import { Link } from "react-router";

import type { CostModel } from "../../api/client";
import { ago, percent } from "../../format";
import { figure } from "./quality";

/** Versions, and what each was trained on. */
export function ModelTable({ models }: { models: readonly CostModel[] }) {
  return (
    <div className="card flush scroll" tabIndex={0} role="region" aria-label="Versions">
      <table>
        <thead>
          <tr>
            <th className="number">Version</th>
            <th>Of</th>
            <th className="number">Pairs</th>
            <th className="number wide">First pick</th>
            <th className="number">Trained on</th>
            <th className="number wide">Held-out tasks</th>
            <th className="wide">Features</th>
            <th className="wide">Data</th>
            <th>Made</th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <tr key={model.version}>
              <td className="number">{model.version}</td>
              <td>
                {model.job_id ? <Link to={`/jobs/${model.job_id}`}>a job</Link> : "the store"}
              </td>
              <td className="number">{percent(figure(model.quality, "pairwise_accuracy"))}</td>
              <td className="number wide">{percent(figure(model.quality, "top1"), 0)}</td>
              <td className="number">
                {model.trained_on.toLocaleString("en")}
                <span className="under">
                  {model.num_tasks} {model.num_tasks === 1 ? "task" : "tasks"}
                </span>
              </td>
              <td className="number wide">{figure(model.quality, "held_out_tasks") ?? "–"}</td>
              <td className="wide">schema {model.feature_version}</td>
              <td className="wide mono quiet">{model.fingerprint?.slice(0, 12) ?? "–"}</td>
              <td className="nowrap">{ago(model.created_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
