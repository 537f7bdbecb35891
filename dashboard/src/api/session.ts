/** The token that this tab keeps, and whether the service wants one before it answers. */

import { useSyncExternalStore } from "react";

const KEY = "loopwright.token";

export interface Session {
  token: string | null;
  /** What the service wants: a token, or another than that which it took before. */
  wants: "token" | "another" | null;
}

let known: Session | undefined;
const listeners = new Set<() => void>();

export function session(): Session {
  return (known ??= { token: sessionStorage.getItem(KEY), wants: null });
}

/** The service did not take `token`. Nothing comes of it if the tab has another by now. */
export function refused(token: string | null): void {
  if (session().token !== token || session().wants) return;
  sessionStorage.removeItem(KEY);
  change({ token: null, wants: token === null ? "token" : "another" });
}

export function signedIn(token: string): void {
  sessionStorage.setItem(KEY, token);
  change({ token, wants: null });
}

/** Forget the token, and with the page all that was read with it. */
export function signOut(): void {
  sessionStorage.removeItem(KEY);
  location.reload();
}

export function useSession(): Session {
  return useSyncExternalStore(watch, session);
}

function change(changed: Session): void {
  known = changed;
  for (const listener of listeners) listener();
}

function watch(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
