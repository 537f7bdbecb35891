interface Props {
  label: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** Something that is on or off. */
export function Toggle({ label, isOn, onChange }: Props) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={() => {
        onChange(!isOn);
      }}
    >
      {label}
    </button>
  );
}
