import type { ReactNode } from "react";
import { Link } from "react-router";

import { Empty } from "./Empty";
import { useTitle } from "./useTitle";

/** A page for an address that names nothing: why, and the way back. */
export function NotFound({ title, children }: { title: string; children: ReactNode }) {
  useTitle(title);
  return (
    <>
      <h1>{title}</h1>
      <Empty>
        <p>{children}</p>
        <Link className="button main" to="/">
          Show all jobs
        </Link>
      </Empty>
    </>
  );
}
