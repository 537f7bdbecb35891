import type { ReactNode } from "react";

/** An empty list: the reason, and what to do. */
export function Empty({ title, children }: { title?: string; children: ReactNode }) {
  return (
    <div className="card empty">
      {title && <h2>{title}</h2>}
      {children}
    </div>
  );
}
