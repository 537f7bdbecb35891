import { describe, expect, test } from "vitest";

import { windowState } from "./window";

const at = (time: string) => new Date(`2026-11-24T${time}:00Z`);

describe("windows", () => {
  test("a window of a day is open from its begin to before its end", () => {
    const text = "08:00-18:30 UTC";
    expect(windowState(text, at("07:59"))).toEqual({ isOpen: false, minutesToOpen: 1 });
    expect(windowState(text, at("08:00"))).toEqual({ isOpen: true, minutesToOpen: 0 });
    expect(windowState(text, at("18:29"))?.isOpen).toBe(true);
    expect(windowState(text, at("18:30"))).toEqual({ isOpen: false, minutesToOpen: 13 * 60 + 30 });
  });

  test("a window may contain midnight, in its own time zone", () => {
    const text = "22:00-06:00 Europe/Berlin"; // an hour before UTC in winter
    expect(windowState(text, at("20:59"))).toEqual({ isOpen: false, minutesToOpen: 1 });
    expect(windowState(text, at("23:30"))?.isOpen).toBe(true);
    expect(windowState(text, at("05:00"))?.isOpen).toBe(false);
  });

  test("an unknown zone or form has no state", () => {
    expect(windowState("22:00-06:00 Mars/Base", at("20:00"))).toBeNull();
    expect(windowState("sometimes", at("20:00"))).toBeNull();
  });
});
