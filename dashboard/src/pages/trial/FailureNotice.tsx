const MEANINGS: Readonly<Record<string, string>> = {
  build_error: "The schedule does not apply to the program, or the compiler rejected the result.",
  wrong_result: "The kernel ran, but its output differs from the reference.",
  timeout: "A step exceeded its time limit. Other candidates are not affected.",
  crash: "The process that ran the kernel crashed. The worker started another process.",
  out_of_memory: "The kernel exceeded the memory limit of a trial.",
  device_error: "The device rejected the kernel.",
  worker_lost: "The worker was lost repeatedly while it measured this trial.",
};

/** How a trial failed: what that means, and where. */
export function FailureNotice({ kind, message }: { kind: string; message: string }) {
  return (
    <div className="notice wrong">
      <strong>{kind.replaceAll("_", " ")}</strong>: {MEANINGS[kind] ?? "The trial failed."}
      <pre className="wrap">{message || "The worker sent no message."}</pre>
    </div>
  );
}
