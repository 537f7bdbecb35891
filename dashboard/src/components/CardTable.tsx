import type { ReactNode } from "react";

/** A column: its name, and how it is set. */
export type Column = readonly [name: string, style?: "number" | "quiet"];

interface TableProps {
  label: string;
  columns: readonly Column[];
  children: ReactNode;
}

/**
 * A table whose rows are cards on a phone, each figure under its column's name. The roles are
 * written out: browsers forget them of tables that are laid out otherwise.
 */
export function CardTable({ label, columns, children }: TableProps) {
  return (
    <div className="card flush scroll cards" tabIndex={0} role="region" aria-label={label}>
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(([name, style]) => (
              <th key={name} role="columnheader" className={style}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">{children}</tbody>
      </table>
    </div>
  );
}

export function CardRow({ className, children }: { className?: string; children: ReactNode }) {
  return (
    <tr role="row" className={className}>
      {children}
    </tr>
  );
}

interface CellProps {
  /** The column's name, which stands above the figure in a card; the card's head has none. */
  of?: string;
  className?: string;
  colSpan?: number;
  isHeader?: boolean;
  children: ReactNode;
}

export function Cell({ of, className, colSpan, isHeader = false, children }: CellProps) {
  const Tag = isHeader ? "th" : "td";
  return (
    <Tag
      role={isHeader ? "rowheader" : "cell"}
      className={className}
      colSpan={colSpan}
      data-of={of}
    >
      {children}
    </Tag>
  );
}
