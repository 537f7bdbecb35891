import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ApiError, signIn } from "../api/client";

/** Ask for an access token; `isAnew` if the previous one was revoked. */
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
          Your access token was revoked. Sign in with another one; unsaved input is preserved.
        </p>
      )}
      <p className="quiet">
        This service requires an access token. Its administrator creates one with{" "}
        <code>loopwright token create NAME</code>. The token is discarded when you close this tab.
      </p>
      <label>
        <span>Access token</span>
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
            ? "Invalid access token: check that it is complete and not revoked."
            : "The service does not respond. Try again later."}
        </p>
      )}
      <button className="main" disabled={asked.isPending}>
        Sign in
      </button>
    </form>
  );
}
