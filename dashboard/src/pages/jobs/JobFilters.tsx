import { useSearchParams } from "react-router";

import { useTargets } from "../../api/lists";
import { withToggled } from "../../components/address";
import { AddressSelect, AddressText } from "../../components/AddressFilters";

const STATES = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
const SORTS = [
  ["", "Newest first"],
  ["created_at", "Oldest first"],
  ["best_secs", "Fastest first"],
  ["-num_measured", "Most trials first"],
  ["-priority", "Highest priority first"],
] as const;

/** Narrows the list of jobs. */
export function JobFilters() {
  const [params, setParams] = useSearchParams();
  const targets = useTargets().data?.items.map((target) => target.name);
  const chosen = params.getAll("state");
  return (
    <search className="card stack">
      <div className="chips" role="group" aria-label="States">
        {STATES.map((state) => (
          <button
            key={state}
            type="button"
            aria-pressed={chosen.includes(state)}
            onClick={() => {
              setParams(withToggled(params, "state", state));
            }}
          >
            {state}
          </button>
        ))}
      </div>
      <div className="filters">
        <AddressText name="text" label="Text" placeholder="name, 64 x 64" />
        <AddressText name="operator" label="Operator" placeholder="matmul" />
        <AddressText name="target" label="Target" known={targets ?? []} />
        <AddressText name="owner" label="Owner" />
        <AddressText name="tag" label="Tag" placeholder="nightly" />
        <AddressSelect name="sort" label="Sort" options={SORTS} />
      </div>
    </search>
  );
}
