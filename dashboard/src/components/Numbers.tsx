import type { ReactNode } from "react";

/** A line of labelled figures. */
export function Numbers({ items }: { items: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="numbers">
      {items.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
