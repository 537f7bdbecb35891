import { useMemo, useState } from "react";

import type { Job } from "../../api/client";
import type { Columns } from "../../charts/columns";
import { isEmpty, type Span } from "../../charts/selection";
import { useRows, type Order } from "../../components/rows";
import { TrialTable } from "../../components/TrialTable";
import { count } from "../../format";
import type { SelectionHandle } from "./useSelection";

interface Props {
  job: Job;
  columns: Columns;
  isChosen: (index: number) => boolean;
  handle: SelectionHandle;
}

/** The trials in a table, with fields for what plots select by dragging. */
export function TableCard({ job, columns, isChosen, handle }: Props) {
  const [order, setOrder] = useState<Order>({ by: "number", falls: false });
  const rows = useRows(job, columns, handle.selection, isChosen, order);
  return (
    <section className="card">
      <div className="page-head">
        <h2>
          {isEmpty(handle.selection) ? "All trials" : "Selected trials"}{" "}
          {rows.count !== undefined && `(${count(rows.count)})`}
        </h2>
        {rows.isSampled && (
          <span className="quiet small">
            only trials that the plots show; remove the decisions to list all
          </span>
        )}
      </div>
      <Filters columns={columns} handle={handle} />
      {rows.count === undefined || rows.count > 0 ? (
        <TrialTable jobId={job.id} rows={rows} order={order} onOrder={setOrder} />
      ) : (
        <p className="quiet">
          No trial meets all conditions. <button onClick={handle.clear}>Show all trials</button>
        </p>
      )}
    </section>
  );
}

function Filters({ columns, handle }: { columns: Columns; handle: SelectionHandle }) {
  const { selection, select } = handle;
  const span = selection.trials;
  const last = columns.number.at(-1) ?? 0;
  const setSpan = (low: number, high: number) => {
    const isAll = low <= 0 && high >= last;
    select({ trials: isAll || low > high ? undefined : ([low, high] satisfies Span) });
  };
  return (
    <div className="filters compact">
      <NumberField
        label="From trial"
        value={span?.[0] ?? 0}
        onChange={(low) => {
          setSpan(low, span?.[1] ?? last);
        }}
      />
      <NumberField
        label="To trial"
        value={span?.[1] ?? last}
        onChange={(high) => {
          setSpan(span?.[0] ?? 0, high);
        }}
      />
      <Names
        label="Sketch"
        names={columns.sketches}
        value={selection.sketch}
        onChange={(sketch) => {
          select({ sketch });
        }}
      />
      <Names
        label="Outcome"
        names={columns.outcomes}
        value={selection.outcome}
        onChange={(outcome) => {
          select({ outcome });
        }}
      />
    </div>
  );
}

interface NumberProps {
  label: string;
  value: number;
  onChange: (value: number) => void;
}

function NumberField({ label, value, onChange }: NumberProps) {
  const shown = Math.round(value);
  return (
    <label>
      <span>{label}</span>
      <input
        key={shown}
        type="number"
        min={0}
        defaultValue={shown}
        onBlur={(event) => {
          const given = event.target.valueAsNumber;
          if (Number.isFinite(given) && given !== shown) onChange(given);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
        }}
      />
    </label>
  );
}

interface NamesProps {
  label: string;
  names: readonly string[];
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

function Names({ label, names, value, onChange }: NamesProps) {
  const sorted = useMemo(() => names.toSorted(), [names]);
  return (
    <label>
      <span>{label}</span>
      <select
        value={value ?? ""}
        onChange={(event) => {
          onChange(event.target.value || undefined);
        }}
      >
        <option value="">all</option>
        {sorted.map((name) => (
          <option key={name} value={name}>
            {name.replaceAll("_", " ")}
          </option>
        ))}
      </select>
    </label>
  );
}
