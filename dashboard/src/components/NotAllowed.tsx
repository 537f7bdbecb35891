import { useCaller } from "../api/queries";

/** Explain to read-only users why an action is disabled; render nothing for others. */
export function NotAllowed({ id, to }: { id?: string; to: string }) {
  const caller = useCaller();
  if (caller.maySubmit) return null;
  return (
    <p id={id} className="quiet small">
      The access token of {caller.name ?? "this tab"} is read-only. To {to}, sign in with a token of
      scope <code>submit</code>.
    </p>
  );
}
