import { useEffect, useRef, useState } from "react";

import type { Job } from "../../api/client";
import { Toggle } from "../../components/Toggle";
import { plural, secs, times } from "../../format";
import { isOver } from "./useLiveJob";

/** A notice of the browser when the job ends, for who looks at something else meanwhile. */
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
        label="Tell me when it ends"
        isOn={isOn}
        onChange={(wanted) => {
          if (wanted) void ask();
          else setOn(false);
        }}
      />
      {isRefused && (
        <span className="quiet" role="status">
          The browser does not let this page show notices: allow them in its settings of the site.
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
