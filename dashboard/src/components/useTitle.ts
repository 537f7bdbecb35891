import { useEffect } from "react";

const PRODUCT = "Loopwright";

/** Name the browser's tab after the page; without a name it keeps the product's. */
export function useTitle(name: string | undefined): void {
  useEffect(() => {
    document.title = name ? `${name} · ${PRODUCT}` : PRODUCT;
  }, [name]);
}
