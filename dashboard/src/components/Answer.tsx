import type { UseQueryResult } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";

import { ApiError, keepToken } from "../api/client";

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
  if (error.problem.status === 401) return <TokenForm detail={error.problem.detail ?? ""} />;
  return (
    <div className="notice wrong" role="alert">
      <strong>{error.problem.title}</strong>
      {error.problem.detail && <pre>{error.problem.detail}</pre>}
    </div>
  );
}

function TokenForm({ detail }: { detail: string }) {
  const [value, setValue] = useState("");
  return (
    <form
      className="notice wrong"
      onSubmit={(event) => {
        event.preventDefault();
        keepToken(value.trim());
        location.reload();
      }}
    >
      <p role="alert">{detail}</p>
      <div className="row">
        <label>
          Token
          <input
            type="password"
            autoComplete="off"
            value={value}
            onChange={(event) => {
              setValue(event.target.value);
            }}
          />
        </label>
        <button className="main">Use it</button>
      </div>
    </form>
  );
}
