/** The SVG path of a small line through positive values, on a logarithmic scale, as steps. */
export function sparkPath(values: readonly number[], width: number, height: number): string {
  if (values.length < 2) return "";
  const logs = values.map(Math.log);
  const least = Math.min(...logs);
  const range = Math.max(...logs) - least || 1;
  const x = (index: number) => ((index * width) / (values.length - 1)).toFixed(1);
  const y = (value: number) => (height - 2 - ((value - least) * (height - 4)) / range).toFixed(1);
  const steps = logs.map((value, index) => (index ? `H${x(index)}V${y(value)}` : `M0 ${y(value)}`));
  return steps.join("");
}
