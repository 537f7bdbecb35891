import { expect, test } from "vitest";

import { layered, widest } from "./layers";

const node = (...after: number[]) => ({ after });

test("a chain is a column", () => {
  const places = layered([node(), node(0), node(1)]);
  expect(places).toEqual([
    { layer: 0, column: 0 },
    { layer: 1, column: 0 },
    { layer: 2, column: 0 },
  ]);
  expect(widest(places)).toBe(1);
});

test("branches stand side by side, and what joins them below both", () => {
  const places = layered([node(), node(0), node(0), node(1), node(2, 3)]);
  expect(places.map(({ layer }) => layer)).toEqual([0, 1, 1, 2, 3]);
  expect(places.map(({ column }) => column)).toEqual([0, 0, 1, 0, 0]);
  expect(widest(places)).toBe(2);
});

test("nodes stand below what they read from", () => {
  const places = layered([node(), node(), node(1), node(0)]);
  expect(places[3]).toEqual({ layer: 1, column: 0 });
  expect(places[2]).toEqual({ layer: 1, column: 1 });
});

test("no node has no width", () => {
  expect(widest(layered([]))).toBe(0);
});
