/** What a page asks for stands in its address, so that it can be sent on and gone back to. */

/** The address with one text changed; an empty one leaves it. */
export function withText(params: URLSearchParams, name: string, value: string): URLSearchParams {
  const changed = new URLSearchParams(params);
  if (value) changed.set(name, value);
  else changed.delete(name);
  return changed;
}

/** The address with a value of a name added, or taken away if it was there. */
export function withToggled(params: URLSearchParams, name: string, value: string) {
  const changed = new URLSearchParams(params);
  const known = params.getAll(name);
  changed.delete(name);
  const left = known.includes(value) ? known.filter((one) => one !== value) : [...known, value];
  for (const one of left) changed.append(name, one);
  return changed;
}

/** The query of the API that an address asks for; other names in it are left aside. */
export function queryOf(params: URLSearchParams, names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, params.getAll(name)]));
}

/** Whether an address leaves anything out: all but the order does. */
export function isNarrowed(params: URLSearchParams): boolean {
  return [...params].some(([name, value]) => name !== "sort" && value !== "");
}
