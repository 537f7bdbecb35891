/** What a worker's canary tells of its host. */

import type { Worker } from "../../api/client";

export type Canary = Required<NonNullable<Worker["canary"]>>;

const NONE: Canary = { at: [], secs: [], noise: [], utilisation: [] };

/** The canary of a worker; an older service tells of none. */
export function canaryOf(worker: Worker): Canary {
  return { ...NONE, ...worker.canary };
}

export interface Verdict {
  kind: "good" | "warn" | "quiet";
  text: string;
}

const NOISY = 0.1;
const SLOW = 1.2;
const FEW = 3;

/** Whether the host is as it was, in words: noisy, slower than it was, or steady. */
export function verdict(canary: Canary): Verdict {
  const { secs, noise } = canary;
  const [last, lastNoise] = [secs.at(-1), noise.at(-1)];
  if (last === undefined || lastNoise === undefined) {
    return { kind: "quiet", text: "no canary samples" };
  }
  if (secs.length < FEW) return { kind: "quiet", text: "too few canary samples" };
  const ratio = last / middle(secs);
  if (ratio > SLOW) {
    return { kind: "warn", text: `${ratio.toFixed(2)}× slower than usual` };
  }
  if (lastNoise > NOISY) {
    return {
      kind: "warn",
      text: `noisy: ${(100 * lastNoise).toFixed(0)} % above its shortest run`,
    };
  }
  return { kind: "good", text: "steady" };
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
