import { useTargets } from "../../api/lists";
import { STRATEGIES, type Options } from "./draft";
import { WhenFields } from "./WhenFields";

interface Props {
  options: Options;
  onChange: (options: Options) => void;
}

/** For which machine, how long, and how the search is to be done. */
export function OptionFields({ options, onChange }: Props) {
  function set(more: Partial<Options>) {
    onChange({ ...options, ...more });
  }
  return (
    <section className="card stack" aria-label="Search">
      <TargetField value={options.target} onChange={(target) => set({ target })} />
      <div className="filters">
        <NumberField
          label="Trials"
          value={options.max_trials}
          least={1}
          most={100_000}
          isRequired
          onChange={(n) => set({ max_trials: n ?? NaN })}
        />
        <NumberField
          label="Time limit in seconds"
          value={options.max_secs}
          least={1}
          most={604_800}
          onChange={(max_secs) => set({ max_secs })}
        />
        <NumberField
          label="Stop after trials without improvement"
          value={options.plateau}
          least={1}
          most={100_000}
          onChange={(plateau) => set({ plateau })}
        />
        <NumberField
          label="Priority"
          value={options.priority}
          least={-1000}
          most={1000}
          isRequired
          onChange={(n) => set({ priority: n ?? NaN })}
        />
        <NumberField
          label="Seed"
          value={options.seed}
          least={0}
          isRequired
          onChange={(n) => set({ seed: n ?? NaN })}
        />
        <label>
          <span>Strategy</span>
          <select
            value={options.strategy}
            onChange={(event) => set({ strategy: event.target.value as Options["strategy"] })}
          >
            {STRATEGIES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <label className="row">
        <input
          type="checkbox"
          checked={options.warm_start}
          onChange={(event) => set({ warm_start: event.target.checked })}
        />
        Warm start: reuse the cost model and earlier schedules
      </label>
      <WhenFields options={options} set={set} />
    </section>
  );
}

function TargetField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const targets = useTargets().data?.items ?? [];
  return (
    <label>
      <span>Target</span>
      <input
        className="mono"
        list="targets"
        required
        maxLength={1000}
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id="targets">
        {["cpu", "cpu -num-cores=1", ...targets.map((target) => target.name)].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

interface NumberProps {
  label: string;
  value: number | null;
  least?: number;
  most?: number;
  isRequired?: boolean;
  onChange: (value: number | null) => void;
}

/** A number; if it is optional, an empty field means no limit. */
function NumberField({ label, value, least, most, isRequired = false, onChange }: NumberProps) {
  return (
    <label>
      <span>{label}</span>
      <input
        type="number"
        required={isRequired}
        min={least}
        max={most}
        placeholder={isRequired ? "" : "no limit"}
        value={value === null || Number.isNaN(value) ? "" : value}
        onChange={(event) => {
          const read = event.target.valueAsNumber;
          onChange(Number.isNaN(read) ? null : read);
        }}
      />
    </label>
  );
}
