/** Places for the nodes of a graph: a layer below those that it reads from. */

export interface GraphNode {
  after: readonly number[];
}

export interface Place {
  layer: number;
  /** The column within the layer, from 0. */
  column: number;
}

/** The place of each node; nodes come after those that they read from. */
export function layered(nodes: readonly GraphNode[]): Place[] {
  const places: Place[] = [];
  const layers: number[][] = [];
  nodes.forEach(({ after }, index) => {
    const layer = 1 + Math.max(-1, ...after.map((one) => places[one]?.layer ?? -1));
    places.push({ layer, column: 0 });
    (layers[layer] ??= []).push(index);
  });
  for (const members of layers) {
    // Below what they read from: by the mean of its columns, which are already known.
    const mean = (index: number): number => {
      const above = (nodes[index]?.after ?? []).map((one) => places[one]?.column ?? 0);
      return above.length ? above.reduce((a, b) => a + b, 0) / above.length : 0;
    };
    const sorted = members.toSorted((a, b) => mean(a) - mean(b) || a - b);
    sorted.forEach((index, column) => {
      const place = places[index];
      if (place) place.column = column;
    });
  }
  return places;
}

/** The number of columns of the widest layer. */
export function widest(places: readonly Place[]): number {
  return Math.max(0, ...places.map(({ column }) => column + 1));
}
