import { Link } from "react-router";

import type { CostModel } from "../api/client";
import { useModels } from "../api/queries";
import { Answer } from "../components/Answer";
import { ago } from "../format";

/** The versions of the cost model of each kind of target, and how well they predicted. */
export function ModelsPage() {
  return (
    <>
      <h1>Cost model</h1>
      <Answer query={useModels()}>
        {({ items }) =>
          items.length ? (
            <ModelTable models={items} />
          ) : (
            <p>No model was trained yet. The first job that ends leaves one.</p>
          )
        }
      </Answer>
    </>
  );
}

function ModelTable({ models }: { models: CostModel[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Models">
      <table>
        <thead>
          <tr>
            <th>Target</th>
            <th className="number">Version</th>
            <th className="number">Trained on</th>
            <th className="number">Pairwise accuracy</th>
            <th className="number wide">Features</th>
            <th className="wide">Of</th>
            <th>Made</th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <tr key={`${model.label} ${model.version}`}>
              <td className="mono">{model.label}</td>
              <td className="number">{model.version}</td>
              <td className="number">{model.trained_on}</td>
              <td className="number">{percent(model.quality.pairwise_accuracy)}</td>
              <td className="number wide">schema {model.feature_version}</td>
              <td className="wide">
                {model.job_id ? <Link to={`/jobs/${model.job_id}`}>a job</Link> : "the store"}
              </td>
              <td>{ago(model.created_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function percent(value: unknown): string {
  return typeof value === "number" ? `${(100 * value).toFixed(1)} %` : "–";
}
