import { Link, useParams } from "react-router";

import type { Shapes } from "../api/client";
import { useShapes } from "../api/queries";
import { Answer } from "../components/Answer";
import { CopyButton } from "../components/CopyButton";
import { NotFound } from "../components/NotFound";
import { Numbers } from "../components/Numbers";
import { State } from "../components/State";
import { SubjectActions } from "../components/SubjectActions";
import { useTitle } from "../components/useTitle";
import { ago, count } from "../format";
import { DispatchCard } from "./shapes/DispatchCard";
import { rangesInWords, signedPercent } from "./shapes/sizes";
import { TimesCard } from "./shapes/TimesCard";
import { TunedCard } from "./shapes/TunedCard";

/** One search over ranges: which kernel runs which sizes, and how much that loses. */
export default function ShapesPage() {
  const { id = "" } = useParams();
  const query = useShapes(id);
  useTitle(query.data && `${query.data.name} (${query.data.state})`);
  return (
    <Answer
      query={query}
      unknown={
        <NotFound title="Search not found">
          This service has no search over ranges with the id <code>{id}</code>. Check the id, and
          check that this is the server that tuned it.
        </NotFound>
      }
    >
      {(shapes) => <ShapesView shapes={shapes} />}
    </Answer>
  );
}

function ShapesView({ shapes }: { shapes: Shapes }) {
  return (
    <>
      <div className="page-head">
        <h1>{shapes.name}</h1>
        <State of={shapes.state} />
        <span className="push row">
          <SubjectActions subject={shapes} query="shapes" many="searches" />
          {shapes.dispatcher && <CopyButton label="Copy Python" text={() => program(shapes)} />}
          <Link className="button" to={`/?group=${shapes.group_id}`}>
            Jobs of its sizes
          </Link>
        </span>
      </div>
      <p className="quiet mono small">{shapes.target}</p>
      {shapes.error && (
        <div className="notice wrong" role="alert">
          <strong>No kernels were chosen.</strong>
          <pre className="wrap">{shapes.error}</pre>
        </div>
      )}
      <Numbers
        items={[
          ["Range", rangesInWords(shapes.ranges)],
          ["Kernels", shapes.num_kernels === null ? "–" : count(shapes.num_kernels)],
          ["Mean loss", signedPercent(shapes.loss)],
          ["Trials", `${count(shapes.num_measured)} / ${count(shapes.max_trials)}`],
          ["Sizes tuned", count(shapes.num_sizes)],
          ["Kernels timed", count(shapes.num_timed)],
          ["Submitted", ago(shapes.created_at)],
        ]}
      />
      {shapes.times.length > 0 ? (
        <>
          <DispatchCard shapes={shapes} />
          <TimesCard shapes={shapes} />
        </>
      ) : (
        <section className="card" aria-label="Kernels">
          <h2>Kernels by size</h2>
          <p className="quiet">
            {shapes.num_timed
              ? `The kernels are being chosen: ${count(shapes.num_timed)} were timed so far.`
              : "The kernels are chosen when the searches of all sizes have ended."}
          </p>
        </section>
      )}
      <TunedCard tuned={shapes.tuned} />
      {shapes.dispatcher && (
        <section className="card" aria-label="Dispatcher">
          <h2>Dispatcher</h2>
          <pre className="code" tabIndex={0} role="region" aria-label="Text of the dispatcher">
            {shapes.dispatcher}
          </pre>
        </section>
      )}
    </>
  );
}

/** The program that fetches the kernel of all sizes. */
function program({ id }: Shapes): string {
  return [
    "import loopwright as lw",
    "",
    `with lw.Client(${JSON.stringify(location.origin)}) as client:`,
    `    kernel = client.shapes(${JSON.stringify(id)}).kernel()`,
    "",
  ].join("\n");
}
