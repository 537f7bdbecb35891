/** The fields that say what to compute and for which machine. */

export interface WorkloadFields {
  form: "operator" | "script";
  operator: string;
  script: string;
  target: string;
}

export const NO_WORKLOAD: WorkloadFields = {
  form: "operator",
  operator: "matmul:512,512,512:float32",
  script: "",
  target: "cpu",
};

/** The `workload` of a request. */
export function workloadOf(fields: WorkloadFields) {
  return fields.form === "operator" ? { operator: fields.operator } : { script: fields.script };
}

interface Props {
  fields: WorkloadFields;
  onChange: (fields: WorkloadFields) => void;
}

export function WorkloadForm({ fields, onChange }: Props) {
  function set(more: Partial<WorkloadFields>) {
    onChange({ ...fields, ...more });
  }
  return (
    <>
      <fieldset className="row">
        <legend>Workload</legend>
        {(["operator", "script"] as const).map((form) => (
          <label key={form} className="row">
            <input
              type="radio"
              name="form"
              checked={fields.form === form}
              onChange={() => {
                set({ form });
              }}
            />
            {form === "operator" ? "Operator" : "Script"}
          </label>
        ))}
      </fieldset>
      {fields.form === "operator" ? (
        <label>
          Operator, shape and type
          <input
            className="mono"
            value={fields.operator}
            onChange={(event) => {
              set({ operator: event.target.value });
            }}
          />
        </label>
      ) : (
        <label>
          Script of a program
          <textarea
            spellCheck={false}
            value={fields.script}
            onChange={(event) => {
              set({ script: event.target.value });
            }}
          />
        </label>
      )}
      <label>
        Target
        <input
          className="mono"
          value={fields.target}
          onChange={(event) => {
            set({ target: event.target.value });
          }}
        />
      </label>
    </>
  );
}
