import { useTargets } from "../../api/lists";
import { AddressSelect, AddressText } from "../../components/AddressFilters";

const SORTS = [
  ["", "Newest first"],
  ["created_at", "Oldest first"],
  ["run_secs", "Fastest first"],
  ["-baseline", "Fastest relative to a library"],
  ["baseline", "Slowest relative to a library"],
] as const;

/** Narrows the best schedules by operator, name, key and target. */
export function BestFilters() {
  const targets = useTargets().data?.items.map((target) => target.name);
  return (
    <search className="card filters">
      <AddressText name="operator" label="Operator" placeholder="matmul" />
      <AddressText name="text" label="Text" placeholder="name, 64 x 64" />
      <AddressText name="target" label="Target" known={targets ?? []} />
      <AddressSelect name="sort" label="Sort" options={SORTS} />
    </search>
  );
}
