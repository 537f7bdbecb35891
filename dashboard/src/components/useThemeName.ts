import { useSyncExternalStore } from "react";

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The theme that is on, so that what is drawn on a canvas is drawn again when it changes. */
export function useThemeName(): string {
  return useSyncExternalStore(watch, current);
}

function current(): string {
  return document.documentElement.dataset.theme ?? (DARK.matches ? "dark" : "light");
}

function watch(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  DARK.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    DARK.removeEventListener("change", changed);
  };
}
