import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ApiError } from "../api/client";

interface AnswerProps<Data> {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}

/** What a query found, or while it has nothing, what it waits for or what went wrong. */
export function Answer<Data>({ query, children }: AnswerProps<Data>) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <Trouble error={query.error} />}
        {children(query.data)}
      </>
    );
  }
  return query.error ? <Trouble error={query.error} /> : <p className="quiet">Loading…</p>;
}

/** An error, and what to do about it. */
export function Trouble({ error }: { error: Error }) {
  if (!(error instanceof ApiError)) {
    return (
      <div className="notice wrong" role="alert">
        <strong>The service does not answer.</strong> It is asked again by itself; if it was
        stopped, start it with <code>loopwright serve</code>.
      </div>
    );
  }
  // The page for signing in says it, and stands above this one.
  if (error.problem.status === 401) return null;
  return (
    <div className="notice wrong" role="alert">
      <strong>{error.problem.title}</strong>
      {error.problem.detail && <pre className="wrap">{error.problem.detail}</pre>}
    </div>
  );
}
