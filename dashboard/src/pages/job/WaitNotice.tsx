import type { Job } from "../../api/client";
import { duration } from "../../format";
import { windowState } from "./window";

/** Why a queued job has not begun. */
export function WaitNotice({ job }: { job: Job }) {
  if (job.state !== "queued" || !job.window) return null;
  const state = windowState(job.window, new Date());
  return (
    <p className="notice" role="status">
      {state === null || state.isOpen ? (
        <>The window {job.window} is open: the job starts when a coordinator claims it.</>
      ) : (
        <>
          <strong>The job waits for its window.</strong> It is measured during {job.window}, which
          opens in {duration(60 * state.minutesToOpen)}.
        </>
      )}
    </p>
  );
}
