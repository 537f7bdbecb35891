interface Props<Value extends string> {
  label: string;
  options: Readonly<Record<Value, string>>;
  value: Value;
  onChange: (value: Value) => void;
}

/** A few options of which one holds, beside each other. */
export function Choice<Value extends string>({ label, options, value, onChange }: Props<Value>) {
  return (
    <span className="chips" role="group" aria-label={label}>
      {(Object.keys(options) as Value[]).map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === value}
          onClick={() => {
            onChange(one);
          }}
        >
          {options[one]}
        </button>
      ))}
    </span>
  );
}
