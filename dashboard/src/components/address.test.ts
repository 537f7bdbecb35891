import { expect, test } from "vitest";

import { isNarrowed, queryOf, withText, withToggled } from "./address";

const at = (text: string) => new URLSearchParams(text);

test("an address holds the filters, without unknown ones", () => {
  const query = queryOf(at("state=running&state=failed&text=conv&x=1"), ["state", "text", "sort"]);
  expect(query).toEqual({ state: ["running", "failed"], text: ["conv"], sort: [] });
});

test("a state is added to the address, and taken away again", () => {
  const added = withToggled(at("state=running&text=a"), "state", "failed");
  expect(added.toString()).toBe("text=a&state=running&state=failed");
  expect(withToggled(added, "state", "running").toString()).toBe("text=a&state=failed");
});

test("a text that is emptied leaves the address", () => {
  expect(withText(at("text=a"), "text", "").toString()).toBe("");
  expect(withText(at(""), "owner", "me").toString()).toBe("owner=me");
});

test("an order leaves nothing out", () => {
  expect(isNarrowed(at("sort=best_secs"))).toBe(false);
  expect(isNarrowed(at("sort=best_secs&owner=me"))).toBe(true);
});
