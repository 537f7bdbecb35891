import { conditions, isEmpty, valueOf, type Condition, type Span } from "../../charts/selection";
import { digits, percent, secs } from "../../format";
import type { SelectionHandle } from "./useSelection";

/** What is selected, each condition with a button that drops it; it stays in sight. */
export function SelectionBar({ handle }: { handle: SelectionHandle }) {
  const { selection, select, clear } = handle;
  if (isEmpty(selection)) return null;
  return (
    <div className="selection" role="status" aria-label="Selection">
      <strong>Selected:</strong>
      {conditions(selection).map((name) => (
        <button
          key={name}
          title="Remove this condition"
          onClick={() => {
            select({ [name]: undefined });
          }}
        >
          {inWords(name, valueOf(selection, name) ?? "")} <span aria-hidden="true">×</span>
        </button>
      ))}
      <button className="push" onClick={clear}>
        Show all trials
      </button>
    </div>
  );
}

function inWords(name: Condition, value: Span | string): string {
  if (typeof value === "string") return `${name} ${value.replaceAll("_", " ")}`;
  const [low, high] = value;
  switch (name) {
    case "trials":
      return `trials ${Math.ceil(low)} to ${Math.floor(high)}`;
    case "time":
      return `${secs(low)} to ${secs(high)}`;
    case "place":
      return `predicted to be faster than ${percent(low, 0)} to ${percent(high, 0)}`;
    case "speed":
      return `${percent(low, 0)} to ${percent(high, 0)} of the round's speed`;
    default:
      return `${name.slice(2)}: ${low === high ? plain(low) : `${plain(low)} to ${plain(high)}`}`;
  }
}

function plain(value: number): string {
  return Number.isInteger(value) ? String(value) : digits(value);
}
