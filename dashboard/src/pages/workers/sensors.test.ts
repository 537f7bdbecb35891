import { expect, test } from "vitest";

import { sensors } from "./sensors";

const GPU = { name: "h200-0", product: "NVIDIA H200", uuid: "GPU-1", is_emulated: false };

test("a GPU shows its clock, its temperature, its power and why it is slow", () => {
  const hot = { sm_mhz: 1200, celsius: 88, watts: 690.4, slowed_by: ["power cap", "power brake"] };
  expect(sensors({ ...GPU, ...hot })).toEqual([
    ["Clock", "1200 MHz"],
    ["Temperature", "88 °C"],
    ["Power", "690 W"],
    ["Throttled by", "power cap, power brake"],
  ]);
});

test("a GPU without sensors shows none", () => {
  const values = sensors({ ...GPU, sm_mhz: null, celsius: null, watts: null, slowed_by: [] });
  expect(values.map(([, value]) => value)).toEqual(["–", "–", "–", "nothing"]);
});
