/** Whether the service answers: the last request of any part of the page says so. */

import { useSyncExternalStore } from "react";

let isLost = false;
const listeners = new Set<() => void>();

/** Note how a request ended: with any answer, or with none. */
export function noteConnection(hasAnswered: boolean): void {
  if (isLost === !hasAnswered) return;
  isLost = !hasAnswered;
  for (const listener of listeners) listener();
}

/** Whether the service left the last request without an answer. */
export function useIsLost(): boolean {
  return useSyncExternalStore(watch, () => isLost);
}

function watch(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
