/** Server-sent events over `fetch`, since the browser's `EventSource` can't send a token. */

import { ApiError, send } from "./client";

export interface JobEvent {
  id: number;
  kind: string;
  at: string;
  payload: Record<string, unknown>;
}

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
 * Follow a job's events after `last` until the stream ends for good. A stream that breaks is taken
 * up after the last event seen; `lost` says whether the server is away at the moment.
 */
export async function followEvents(
  jobId: string,
  last: number,
  seen: (id: number) => void,
  lost: (isLost: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  let hasEnded = false;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", "Last-Event-ID": String(last) };
      const response = await send(`/jobs/${jobId}/events`, { headers, signal });
      lost(false);
      failures = 0;
      await readAll(response, (data) => {
        const event = JSON.parse(data) as JobEvent;
        last = event.id;
        hasEnded = isFinal(event);
        seen(last);
      });
      // A service that stops ends its streams too, and comes back.
      if (hasEnded) return;
      throw new Error("the stream ended before the job did");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.problem.status < 500) throw error;
      lost(true);
      await sleep(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] ?? 4000, signal);
    }
  }
}

const FINAL = new Set<unknown>(["succeeded", "failed", "cancelled"]);

function isFinal(event: JobEvent): boolean {
  return event.kind === "state" && FINAL.has(event.payload.state);
}

async function readAll(response: Response, found: (data: string) => void): Promise<void> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest = takeMessages(rest + value, found);
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
