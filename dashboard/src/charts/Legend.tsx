import { count } from "../format";
import { counts } from "./columns";

interface Props {
  label: string;
  names: readonly string[];
  colors: readonly string[];
  /** Of which trials are counted; null where those that are there are not all. */
  column: readonly number[] | null;
  chosen: string | undefined;
  onChoose: (name: string | undefined) => void;
}

/** What the colours mean; a name that is pressed selects its trials. */
export function Legend({ label, names, colors, column, chosen, onChoose }: Props) {
  const numbers = column && counts(column, names);
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
          {numbers && <span className="quiet">{count(numbers[index] ?? 0)}</span>}
        </button>
      ))}
    </div>
  );
}
