import { useMutation, useQueryClient } from "@tanstack/react-query";

import { ApiError, post, type Subject } from "../api/client";
import { useCaller } from "../api/queries";
import { EndButtons, type Ending } from "./EndButtons";
import { NotAllowed } from "./NotAllowed";

interface Props {
  subject: Subject;
  /** The name of its query, and what it is called: `model`, `models`. */
  query: string;
  many: string;
}

/** What can be done to all jobs of a model or of a search over ranges while they run. */
export function SubjectActions({ subject, query, many }: Props) {
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: (how: Ending) => post(`/groups/${subject.group_id}/${how}`),
    onSuccess: () => client.invalidateQueries({ queryKey: [query, subject.id] }),
  });
  const { maySubmit } = useCaller();
  if (subject.state !== "queued" && subject.state !== "running") return null;
  return (
    <span className="row">
      <EndButtons
        isBusy={end.isPending || !maySubmit}
        asked={end.isError ? undefined : end.variables}
        onEnd={end.mutate}
      />
      <NotAllowed to={`stop or cancel ${many}`} />
      {end.error && (
        <span className="bad" role="alert">
          {end.error instanceof ApiError ? end.error.message : "The service does not respond."}
        </span>
      )}
    </span>
  );
}
