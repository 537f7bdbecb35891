import { counts } from "./columns";

interface Props {
  label: string;
  names: readonly string[];
  colors: readonly string[];
  column: readonly number[];
  chosen: string | undefined;
  onChoose: (name: string | undefined) => void;
}

/** What the colours mean; a name that is pressed selects its trials. */
export function Legend({ label, names, colors, column, chosen, onChoose }: Props) {
  const numbers = counts(column, names);
  return (
    <div className="legend" role="group" aria-label={label}>
      {names.map((name, index) => (
        <button
          key={name}
          aria-pressed={name === chosen}
          onClick={() => {
            onChoose(name === chosen ? undefined : name);
          }}
        >
          <span className="swatch" style={{ background: colors[index] }} />
          {name.replaceAll("_", " ")}
          <span className="quiet">{numbers[index]?.toLocaleString("en")}</span>
        </button>
      ))}
    </div>
  );
}
