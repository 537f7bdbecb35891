import { expect, test } from "vitest";

import { shortNames } from "./axes";

test("names of decisions of one block leave the block out", () => {
  expect(shortNames(["i of C, part 1", "k of C, part 2", "unroll of k of C"])).toEqual([
    "i, part 1",
    "k, part 2",
    "unroll of k",
  ]);
});

test("names of decisions of several blocks keep them", () => {
  const names = ["i of C, part 1", "i of D, part 1"];
  expect(shortNames(names)).toEqual(names);
  expect(shortNames(["i of C", "vector width"])).toEqual(["i of C", "vector width"]);
});
