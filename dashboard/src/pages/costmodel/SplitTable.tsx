import type { CostModel } from "../../api/client";
import { percent } from "../../format";
import { bySplit } from "./quality";

/** How well a model predicts without a shape, an operator, or the kind of target. */
export function SplitTable({ model }: { model: CostModel }) {
  const splits = bySplit(model);
  if (!splits.length) return null;
  return (
    <table aria-label={`Held-out kinds of ${model.label}`} style={{ marginBottom: "0.7rem" }}>
      <thead>
        <tr>
          <th>Trained without</th>
          <th className="number">Pairs</th>
          <th className="number">First pick</th>
          <th className="number">Best of five</th>
        </tr>
      </thead>
      <tbody>
        {splits.map(({ heldOut, pairwise, top1, top5 }) => (
          <tr key={heldOut}>
            <td>{heldOut}</td>
            <td className="number">{percent(pairwise)}</td>
            <td className="number">{percent(top1, 0)}</td>
            <td className="number">{percent(top5, 0)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
