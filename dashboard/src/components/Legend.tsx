interface Props {
  lines: readonly { label: string; color: string }[];
}

/** What the colours of a plot stand for. */
export function Legend({ lines }: Props) {
  return (
    <ul className="legend small">
      {lines.map(({ label, color }) => (
        <li key={label}>
          <span className="swatch" style={{ background: color }} /> {label}
        </li>
      ))}
    </ul>
  );
}
