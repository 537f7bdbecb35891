import { useSearchParams } from "react-router";

import { useShapesList } from "../api/lists";
import { queryOf } from "../components/address";
import { Cell, type Column } from "../components/CardTable";
import { NAMES, SubjectList } from "../components/SubjectList";
import { count } from "../format";
import { rangesInWords, signedPercent } from "./shapes/sizes";

const WORDS = {
  title: "Searches over ranges",
  label: "Ranges",
  path: "/shapes",
  one: "Search",
  many: "searches",
  example: "matmul",
};
const COLUMNS: readonly Column[] = [["Range"], ["Kernels", "number"], ["Mean loss", "number"]];

/** All searches over ranges of sizes on this service. */
export default function ShapesListPage() {
  const [params] = useSearchParams();
  return (
    <SubjectList
      words={WORDS}
      query={useShapesList(queryOf(params, NAMES))}
      columns={COLUMNS}
      cells={(shapes) => (
        <>
          <Cell of="Range">{rangesInWords(shapes.ranges)}</Cell>
          <Cell of="Kernels" className="number">
            {shapes.num_kernels === null ? "–" : count(shapes.num_kernels)}
          </Cell>
          <Cell of="Mean loss" className="number">
            {signedPercent(shapes.loss)}
          </Cell>
        </>
      )}
      hint={
        <p>
          A search over ranges finds one kernel for many sizes. Start from the command line:{" "}
          <code>{`loopwright tune matmul:M,512,512 --range M=1:512 --url ${location.origin}`}</code>
        </p>
      }
    />
  );
}
