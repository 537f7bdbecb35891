import { useMemo, useState } from "react";
import { useNavigate } from "react-router";

import type { Job } from "../../api/client";
import { useColumns, useDecisions, useSummary } from "../../api/plots";
import { NO_COLUMNS } from "../../charts/columns";
import { chosenOf, chosenRowsOf, knownOf } from "../../charts/linked";
import { Loading, Refusal } from "../../components/Answer";
import { useLastError } from "../../components/useLastError";
import { CurveCard } from "./CurveCard";
import { DecisionCard } from "./DecisionCard";
import { FailureCard } from "./FailureCard";
import { JobHead } from "./JobHead";
import { ModelCard } from "./ModelCard";
import { SelectionBar } from "./SelectionBar";
import { SketchCard } from "./SketchCard";
import { SpentCard } from "./SpentCard";
import { TableCard } from "./TableCard";
import { isOver } from "./useLiveJob";
import { useSelection } from "./useSelection";

const NO_DECISIONS = () => false;

/** Everything about a job; what is selected in one plot is selected in all of them. */
export function JobView({ job }: { job: Job }) {
  const handle = useSelection();
  const { selection } = handle;
  const [shownSketch, showSketch] = useState<string>();
  const query = useColumns(job);
  const error = useLastError(query);
  const columns = query.data ?? NO_COLUMNS;
  const summary = useSummary(job);
  const decisions = useDecisions(job, selection.sketch ?? shownSketch);
  const known = useMemo(() => knownOf(columns, decisions.data), [columns, decisions.data]);
  const isChosen = useMemo(() => chosenOf(columns, known, selection), [columns, known, selection]);
  const isRowChosen = useMemo(
    () => (decisions.data ? chosenRowsOf(decisions.data, known, selection) : NO_DECISIONS),
    [decisions.data, known, selection],
  );
  const navigate = useNavigate();
  const open = (number: number) => void navigate(`/jobs/${job.id}/trials/${number}`);
  return (
    <>
      <JobHead job={job} />
      <Refusal error={error} />
      {columns.number.length === 0 ? (
        !error && <Nothing isPending={query.isPending} job={job} />
      ) : (
        <>
          <SelectionBar handle={handle} />
          <CurveCard
            job={job}
            columns={columns}
            isChosen={isChosen}
            handle={handle}
            onOpen={open}
          />
          <div className="columns">
            <div className="stack">
              <ModelCard
                columns={columns}
                summary={summary.data}
                isChosen={isChosen}
                handle={handle}
                onOpen={open}
              />
              <SketchCard job={job} summary={summary} handle={handle} />
            </div>
            <div className="stack">
              <FailureCard jobId={job.id} summary={summary} handle={handle} />
              <SpentCard summary={summary} />
            </div>
          </div>
          <DecisionCard
            query={decisions}
            isChosen={isRowChosen}
            handle={handle}
            onSketch={showSketch}
          />
          <TableCard job={job} columns={columns} isChosen={isChosen} handle={handle} />
        </>
      )}
    </>
  );
}

function Nothing({ isPending, job }: { isPending: boolean; job: Job }) {
  if (isPending) return <Loading />;
  return (
    <p className="quiet">
      {job.state === "queued" && !job.window
        ? "The job is queued. It starts when a coordinator claims it."
        : isOver(job)
          ? "The job ended without trials."
          : "The job has no trials yet."}
    </p>
  );
}
