import type { Shapes } from "../../api/client";
import { CardRow, CardTable, Cell, type Column } from "../../components/CardTable";
import { colorOf } from "../../components/colors";
import { secs } from "../../format";
import { signedPercent, sizesInWords } from "./sizes";

const COLUMNS: readonly Column[] = [
  ["Size"],
  ["Kernel"],
  ["Time", "number"],
  ["Fastest kernel", "number"],
  ["Estimated loss", "number"],
  ["Tuned alone", "number"],
  ["Loss", "number"],
];

/** The times at all sizes that were timed, and what the choice of the dispatcher loses there. */
export function TimesCard({ shapes }: { shapes: Shapes }) {
  return (
    <>
      <CardTable label="Times" columns={COLUMNS}>
        {shapes.times.map((time) => (
          <CardRow key={sizesInWords(time.sizes)}>
            <Cell of="Size" className="mono">
              {sizesInWords(time.sizes)}
            </Cell>
            <Cell of="Kernel">
              <span className="swatch" style={{ background: colorOf(time.kernel) }} /> {time.kernel}
            </Cell>
            <Cell of="Time" className="number">
              {secs(time.run_secs)}
            </Cell>
            <Cell of="Fastest kernel" className="number">
              {secs(time.best_secs)}
            </Cell>
            <Cell of="Estimated loss" className="number">
              {signedPercent(time.run_secs / time.best_secs - 1)}
            </Cell>
            <Cell of="Tuned alone" className="number">
              {secs(time.tuned_secs)}
            </Cell>
            <Cell of="Loss" className="number">
              {signedPercent(time.loss)}
            </Cell>
          </CardRow>
        ))}
      </CardTable>
      <p className="quiet small">
        The estimated loss compares the kernel that the dispatcher calls with the fastest of all
        kernels that were timed; the loss with the best schedule of that size alone. All times are
        the shortest sample.
      </p>
    </>
  );
}
