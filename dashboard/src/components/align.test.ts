import { expect, test } from "vitest";

import { alignLines } from "./align";

const TEXTS = ["", "a\n", "a\nb\nc\n", "b\nc\nd", "a\nx\ny\nc\n", "x\n\na\n"];

test.each(TEXTS.flatMap((before) => TEXTS.map((after) => [before, after] as const)))(
  "each side of %j and %j reads as it was",
  (before, after) => {
    const rows = alignLines(before, after);
    const side = (of: "before" | "after") => rows.map((row) => row[of]).filter((l) => l !== null);
    expect(side("before").join("\n")).toBe(before.replace(/\n$/, ""));
    expect(side("after").join("\n")).toBe(after.replace(/\n$/, ""));
    for (const row of rows) expect(row.isSame).toBe(row.before === row.after);
  },
);

test("what replaces a line stands beside it", () => {
  expect(alignLines("a\nb\nc\n", "a\nx\nc\n")[1]).toEqual({
    before: "b",
    after: "x",
    isSame: false,
  });
});
