import type { ReactNode } from "react";

import { ApiError } from "../api/client";
import { useLastError } from "./useLastError";

interface Query<Data> {
  data: Data | undefined;
  error: Error | null;
  isSuccess: boolean;
}

interface AnswerProps<Data> {
  query: Query<Data>;
  /** What to show if the service has no such item; without it, the service's message. */
  unknown?: ReactNode;
  children: (data: Data) => ReactNode;
}

/** The data of a query; until it arrives, a loading text or the error. */
export function Answer<Data>({ query, unknown, children }: AnswerProps<Data>) {
  const error = useLastError(query);
  if (query.data !== undefined) {
    return (
      <>
        <Refusal error={error} />
        {children(query.data)}
      </>
    );
  }
  if (unknown && isUnknown(error)) return unknown;
  return error instanceof ApiError ? <Refusal error={error} /> : <Loading />;
}

/** The service's error message. The page's notice covers a lost connection. */
export function Refusal({ error }: { error: Error | null }) {
  return error instanceof ApiError ? <Trouble error={error} /> : null;
}

export function Loading() {
  return <p className="quiet">Loading…</p>;
}

const NOT_FOUND = 404;
const NOT_AN_ID = 422;

/** Whether an error means that an address is invalid: an unknown or malformed id. */
export function isUnknown(error: Error | null | undefined): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.problem.status === NOT_FOUND || error.problem.status === NOT_AN_ID;
}

/** The error of a request, and how to fix it. */
export function Trouble({ error }: { error: Error }) {
  if (!(error instanceof ApiError)) {
    return (
      <div className="notice wrong" role="alert">
        <strong>The service did not respond.</strong> Try again when the connection is restored.
      </div>
    );
  }
  // The sign-in page covers the error.
  if (error.problem.status === 401) return null;
  return (
    <div className="notice wrong" role="alert">
      <strong>{error.problem.title}</strong>
      {error.problem.detail && <pre className="wrap">{error.problem.detail}</pre>}
    </div>
  );
}
