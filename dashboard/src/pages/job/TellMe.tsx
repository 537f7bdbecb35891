import { useEffect, useRef, useState } from "react";

import type { Job } from "../../api/client";
import { Toggle } from "../../components/Toggle";
import { plural, secs, times } from "../../format";
import { isOver } from "./useLiveJob";

/** A toggle for a browser notification when the job finishes. */
export function TellMe({ job }: { job: Job }) {
  const [isOn, setOn] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const isEnded = isOver(job);
  const wasEnded = useRef(isEnded);
  useEffect(() => {
    const hasJustEnded = isEnded && !wasEnded.current;
    wasEnded.current = isEnded;
    if (isOn && hasJustEnded) tell(job);
  }, [isOn, isEnded, job]);
  // Browsers have notices on pages of this machine, and of others over HTTPS.
  if (isEnded || !("Notification" in window)) return null;
  const ask = async () => {
    const isAllowed = (await Notification.requestPermission()) === "granted";
    setOn(isAllowed);
    setRefused(!isAllowed);
  };
  return (
    <>
      <Toggle
        label="Notify me when it finishes"
        isOn={isOn}
        onChange={(wanted) => {
          if (wanted) void ask();
          else setOn(false);
        }}
      />
      {isRefused && (
        <span className="quiet" role="status">
          The browser blocks notifications from this page. Allow them in its site settings.
        </span>
      )}
    </>
  );
}

function tell(job: Job) {
  const notice = new Notification(`${job.workload_name}: ${job.state}`, {
    body: `${secs(job.best_secs)} ${job.best_kind ?? ""}, ${times(job.speedup)} the default, after ${plural(job.num_measured, "trial")}`,
    icon: "/icon.svg",
    tag: job.id,
  });
  notice.onclick = () => {
    window.focus();
    notice.close();
  };
}
