import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { checkConnection } from "../api/client";
import { useIsLost } from "../api/connection";

const CHECK_MS = 2000;

/** One notice for the whole page while the service does not answer. */
export function ConnectionNotice() {
  const isLost = useIsLost();
  const client = useQueryClient();
  useEffect(() => {
    if (!isLost) return;
    // A page that does not poll would not notice that the service is back.
    const timer = setInterval(() => void checkConnection(), CHECK_MS);
    return () => {
      clearInterval(timer);
      void client.refetchQueries({ predicate: ({ state }) => state.status === "error" });
    };
  }, [isLost, client]);
  if (!isLost) return null;
  return (
    <div className="notice wrong" role="alert">
      <strong>Connection lost. Reconnecting…</strong> The page shows the last data received. If the
      service was stopped, start it with <code>loopwright serve</code>.
    </div>
  );
}
