/** A state in its colour; the word says it too. */
export function State({ of }: { of: string }) {
  return <span className={`state ${of}`}>{of}</span>;
}
