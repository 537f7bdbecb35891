import { expect, test } from "vitest";

import { takeMessages } from "./events";

test("messages are taken from any cut of the stream, and what is incomplete is left", () => {
  const stream =
    'id: 1\nevent: state\ndata: {"id":1}\n\n: ping\n\ndata: {"id":2}\r\n\r\ndata: {"id"';
  for (let cut = 0; cut <= stream.length; cut++) {
    const found: string[] = [];
    const rest = takeMessages(stream.slice(0, cut), (data) => found.push(data));
    const end = takeMessages(rest + stream.slice(cut), (data) => found.push(data));
    expect(found).toEqual(['{"id":1}', '{"id":2}']);
    expect(end).toBe('data: {"id"');
  }
});
