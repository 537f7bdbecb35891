import { expect, test } from "vitest";

import { snippet } from "./snippet";

test("the script stands in the program as it is, also with what ends a text", () => {
  const text = snippet("http://here:1", 'def f():\n    """doc \\n"""\n', "cpu");
  expect(text).toContain('SCRIPT = """\ndef f():\n    \\"\\"\\"doc \\\\n\\"\\"\\"\n"""\n');
  expect(text).toContain('with lw.Client("http://here:1") as client:');
  expect(text).toContain('client.kernel(SCRIPT, target="cpu")');
});
