import { expect, test } from "vitest";

import { address } from "./client";

test("what is not given is left out of an address, and a list is repeated", () => {
  expect(address("/jobs", { state: ["running", "queued"], text: "", limit: 5, cursor: null })).toBe(
    "/jobs?state=running&state=queued&limit=5",
  );
  expect(address("/jobs")).toBe("/jobs");
});
