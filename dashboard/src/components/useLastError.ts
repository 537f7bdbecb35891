import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";

type Outcome = Pick<UseQueryResult, "error" | "isSuccess">;

/**
 * The error of a query until the query succeeds. The query itself forgets its error at each new
 * attempt, so a page that polls would switch between the error and "Loading…".
 */
export function useLastError({ error, isSuccess }: Outcome): Error | null {
  const [last, setLast] = useState<Error | null>(null);
  if (error && error !== last) setLast(error);
  if (isSuccess && last) setLast(null);
  return isSuccess ? null : (error ?? last);
}
