import type { CostModel } from "../../api/client";
import { useWorkloads } from "../../api/lists";
import { TaskName } from "../../components/Figures";
import { percent } from "../../format";
import { byTask } from "./quality";

interface Props {
  model: CostModel;
  before: CostModel | undefined;
}

/** How well a model predicts each task when it is trained on the others, the worst first. */
export function TaskTable({ model, before }: Props) {
  const workloads = useWorkloads().data?.items ?? [];
  const tasks = byTask(model, before);
  if (!tasks.length) {
    return <p className="quiet">No task has enough correct trials to evaluate the model.</p>;
  }
  return (
    <div
      className="scroll tasks"
      tabIndex={0}
      role="region"
      aria-label={`Held-out tasks of ${model.label}`}
    >
      <table>
        <thead>
          <tr>
            <th>Task</th>
            <th className="number">Pairs</th>
            <th className="number">Drift</th>
            <th className="number wide">First pick</th>
            <th className="number wide">Trials saved</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map(({ task, pairwise, drift, top1, saved }) => {
            const [key = "", target] = task.split("@");
            const known = workloads.find((workload) => workload.key === key);
            return (
              <tr key={task}>
                <td>
                  <TaskName shape={null} target={target ?? ""}>
                    {known?.name ?? key.slice(0, 12)}
                  </TaskName>
                </td>
                <td className="number">{percent(pairwise)}</td>
                <td className={`number ${drift !== null && drift < -0.02 ? "bad" : ""}`}>
                  {drift === null ? "new" : `${drift >= 0 ? "+" : "−"}${percent(Math.abs(drift))}`}
                </td>
                <td className="number wide">{percent(top1, 0)}</td>
                <td className="number wide">{saved === null ? "–" : saved.toFixed(0)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
