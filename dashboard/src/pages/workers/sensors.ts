/** What the sensors of a GPU report. */

import type { Worker } from "../../api/client";

type Device = NonNullable<Worker["device"]>;

/** The clock, the temperature and the power of a GPU, and why its clock is lowered. */
export function sensors(device: Device): [string, string][] {
  return [
    ["Clock", quantity(device.sm_mhz, "MHz")],
    ["Temperature", quantity(device.celsius, "°C")],
    ["Power", quantity(device.watts, "W")],
    ["Throttled by", device.slowed_by?.join(", ") || "nothing"],
  ];
}

function quantity(value: number | null | undefined, unit: string): string {
  return value === null || value === undefined ? "–" : `${Math.round(value)} ${unit}`;
}
