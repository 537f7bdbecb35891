const MEANINGS: Readonly<Record<string, string>> = {
  build_error: "The schedule does not apply to the program, or the compiler refused what it gave.",
  wrong_result: "The kernel ran, but what it computed differs from the reference.",
  timeout: "A step took longer than it may. A faster schedule is not lost: only this one is slow.",
  crash: "The process that ran the kernel died; the worker started another and went on.",
  out_of_memory: "The kernel asked for more memory than a trial may use.",
  device_error: "The device refused the kernel.",
  worker_lost: "The worker vanished while it measured this, several times.",
};

/** How a trial failed: what that means, and where. */
export function FailureNotice({ kind, message }: { kind: string; message: string }) {
  return (
    <div className="notice wrong">
      <strong>{kind.replaceAll("_", " ")}</strong>: {MEANINGS[kind] ?? "The trial failed."}
      <pre className="wrap">{message || "The worker gave no message."}</pre>
    </div>
  );
}
