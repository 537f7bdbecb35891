/** Server-sent events over `fetch`, since the browser's `EventSource` can't send a token. */

import { ApiError, send } from "./client";

const RETRY_MS = [500, 1000, 2000, 4000];

/** Split a stream of text into the messages that it carries; returns what is left of it. */
export function takeMessages(text: string, found: (data: string) => void): string {
  const parts = text.split(/\r?\n\r?\n/);
  const rest = parts.pop() ?? "";
  for (const part of parts) {
    const data = part
      .split(/\r?\n/)
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trimStart());
    if (data.length) found(data.join("\n"));
  }
  return rest;
}

/**
 * Call `seen` at each event of a job from now on, until aborted, and when a stream begins: the job
 * then holds all events before it.
 */
export async function followEvents(
  jobId: string,
  seen: () => void,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", "Last-Event-ID": "now" };
      const response = await send(`/jobs/${jobId}/events`, { headers, signal });
      failures = 0;
      seen();
      await readAll(response, seen);
      // It ended with the job, or the service stops and comes back.
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.problem.status < 500) throw error;
    }
    await sleep(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] ?? 4000, signal);
  }
}

async function readAll(response: Response, seen: () => void): Promise<void> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest = takeMessages(rest + value, seen);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
