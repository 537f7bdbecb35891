import { useState } from "react";

import { chooseTheme, chosenTheme, type Theme } from "./theme";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const NAMES: Record<Theme, string> = { system: "system", light: "light", dark: "dark" };
const SHAPES: Record<Theme, string> = {
  system: "M3 5h18v11H3zM8 20h8M12 16v4",
  light:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
  dark: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
};

/** Light, dark, or as the system has it: each press goes on to the next. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme());
  return (
    <button
      type="button"
      className="icon"
      aria-label={`Theme: ${NAMES[theme]}`}
      title={`Theme: ${NAMES[theme]}`}
      onClick={() => {
        chooseTheme(NEXT[theme]);
        setTheme(NEXT[theme]);
      }}
    >
      <svg
        viewBox="0 0 24 24"
        width="18"
        height="18"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.8"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        <path d={SHAPES[theme]} />
      </svg>
    </button>
  );
}
