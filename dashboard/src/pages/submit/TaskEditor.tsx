import { Choice } from "../../components/Choice";
import { CheckResult } from "./CheckResult";
import { EXAMPLES, type TaskDraft } from "./draft";
import { ScriptEditor } from "./ScriptEditor";
import type { TaskCheck } from "./useTaskChecks";

const FORMS = { operator: "Operator", script: "Script" } as const;

interface Props {
  task: TaskDraft;
  check: TaskCheck;
  /** Its place among several tasks, from 1; null if it is the only one. */
  place: number | null;
  onChange: (task: TaskDraft) => void;
  onRemove: (() => void) | null;
}

/** One task as it is written, and beside it what the service reads of it. */
export function TaskEditor({ task, check, place, onChange, onRemove }: Props) {
  const name = nameOf("Workload", place);
  const mistake = check.state === "refused" ? check.mistake : null;
  return (
    <div className="columns">
      <section className="card stack" aria-label={name}>
        <div className="page-head" style={{ margin: 0 }}>
          <h2 style={{ margin: 0 }}>{name}</h2>
          <Choice
            label="Form"
            options={FORMS}
            value={task.form}
            onChange={(form) => onChange({ ...task, form })}
          />
          {onRemove && (
            <button type="button" className="push" onClick={onRemove}>
              Remove this task
            </button>
          )}
        </div>
        {task.form === "operator" ? (
          <OperatorField
            value={task.operator}
            onChange={(operator) => onChange({ ...task, operator })}
          />
        ) : (
          <ScriptEditor
            value={task.script}
            mistake={mistake?.pointer.startsWith("/workload") ? mistake : null}
            onChange={(script) => onChange({ ...task, script })}
          />
        )}
        {place !== null && (
          <label>
            <span>Weight: number of executions in the model</span>
            <input
              type="number"
              min={0.001}
              step="any"
              required
              value={Number.isNaN(task.weight) ? "" : task.weight}
              onChange={(event) => onChange({ ...task, weight: event.target.valueAsNumber })}
            />
          </label>
        )}
      </section>
      <CheckResult name={nameOf("Parsed program", place)} check={check} />
    </div>
  );
}

function nameOf(what: string, place: number | null): string {
  return place === null ? what : `${what}, task ${place}`;
}

function OperatorField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <>
      <label>
        <span>Operator, shape and type</span>
        <input
          className="mono"
          value={value}
          required
          maxLength={1000}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
        />
      </label>
      <div className="chips" role="group" aria-label="Examples">
        {EXAMPLES.map((example) => (
          <button key={example} type="button" onClick={() => onChange(example)}>
            {example.split(":")[0]}
          </button>
        ))}
      </div>
    </>
  );
}
