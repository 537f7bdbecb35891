import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { Job } from "../../api/client";
import { followEvents } from "../../api/events";

const RENEW_MS = 400;

/** Read a job again at its events, a few times a second at most. */
export function useLiveJob(id: string, job: Job | undefined): void {
  const client = useQueryClient();
  const isWatched = job !== undefined && !isOver(job);
  useEffect(() => {
    if (!isWatched) return;
    const stop = new AbortController();
    const renew = () => client.invalidateQueries({ queryKey: ["job", id] });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void renew();
      }, RENEW_MS);
    };
    followEvents(id, soon, stop.signal)
      .catch(() => undefined)
      .finally(() => void renew());
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, client, isWatched]);
}

export function isOver(job: Job): boolean {
  return job.state === "succeeded" || job.state === "failed" || job.state === "cancelled";
}
