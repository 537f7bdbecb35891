import { useMutation, useQueryClient } from "@tanstack/react-query";

import { ApiError, post, type Model } from "../../api/client";
import { useCaller } from "../../api/queries";
import { EndButtons, type Ending } from "../../components/EndButtons";
import { NotAllowed } from "../../components/NotAllowed";

/** What can be done to all jobs of a model that is being tuned. */
export function ModelActions({ model }: { model: Model }) {
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: (how: Ending) => post(`/groups/${model.group_id}/${how}`),
    onSuccess: () => client.invalidateQueries({ queryKey: ["model", model.id] }),
  });
  const { maySubmit } = useCaller();
  if (model.state !== "queued" && model.state !== "running") return null;
  return (
    <span className="row">
      <EndButtons
        isBusy={end.isPending || !maySubmit}
        asked={end.isError ? undefined : end.variables}
        onEnd={end.mutate}
      />
      <NotAllowed to="stop or cancel models" />
      {end.error && (
        <span className="bad" role="alert">
          {end.error instanceof ApiError ? end.error.message : "The service does not respond."}
        </span>
      )}
    </span>
  );
}
