import { sparkPath } from "./sparkPath";

const WIDTH = 96;
const HEIGHT = 26;

/** The best time so far as a small falling line, on a logarithmic scale. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const path = sparkPath(values, WIDTH, HEIGHT);
  if (!path) return null;
  return (
    <svg
      className="sparkline"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      aria-hidden="true"
    >
      <path d={path} />
    </svg>
  );
}
