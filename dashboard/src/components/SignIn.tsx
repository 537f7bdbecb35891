import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ApiError, signIn } from "../api/client";

/** Asks for a token; `isAnew` if one was taken before, and is not any more. */
export function SignIn({ isAnew }: { isAnew: boolean }) {
  const [value, setValue] = useState("");
  const client = useQueryClient();
  const asked = useMutation({
    mutationFn: signIn,
    onSuccess: () => client.resetQueries(),
  });
  return (
    <form
      className="card sign-in stack"
      onSubmit={(event) => {
        event.preventDefault();
        asked.mutate(value.trim());
      }}
    >
      <h1>Sign in</h1>
      {isAnew && (
        <p role="alert">
          Your token does not work any more: it was revoked. What you wrote on this page is kept.
        </p>
      )}
      <p className="quiet">
        This service wants a token. Whoever runs it makes one with{" "}
        <code>loopwright token create NAME</code>. It is forgotten when you close this tab.
      </p>
      <label>
        <span>Token</span>
        <input
          type="password"
          className="mono"
          autoComplete="off"
          autoFocus
          required
          maxLength={1000}
          value={value}
          aria-invalid={asked.isError}
          onChange={(event) => {
            setValue(event.target.value);
          }}
        />
      </label>
      {asked.error && (
        <p className="bad" role="alert">
          {asked.error instanceof ApiError
            ? "The service does not know this token. Is it whole, and not revoked?"
            : "The service does not answer. Try again when it is back."}
        </p>
      )}
      <button className="main" disabled={asked.isPending}>
        Sign in
      </button>
    </form>
  );
}
