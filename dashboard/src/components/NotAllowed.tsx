import { useCaller } from "../api/queries";

/** Why something is disabled for whoever may only look; nothing for all others. */
export function NotAllowed({ id, to }: { id?: string; to: string }) {
  const caller = useCaller();
  if (caller.maySubmit) return null;
  return (
    <p id={id} className="quiet small">
      The token of {caller.name ?? "this tab"} may only look. To {to}, sign in with one of the scope{" "}
      <code>submit</code>.
    </p>
  );
}
