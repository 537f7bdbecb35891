import { useMemo } from "react";

import { alignLines, type AlignedLine } from "./align";

interface Props {
  before: string;
  after: string;
}

/** Two texts beside each other, line by line, with what differs marked. */
export function SideBySide({ before, after }: Props) {
  const lines = useMemo(() => alignLines(before, after), [before, after]);
  return (
    <div className="scroll code" tabIndex={0} role="region" aria-label="Before and after">
      <table>
        <thead>
          <tr>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line, index) => (
            <tr key={index} className={line.isSame ? "same" : ""}>
              <Line line={line.before} mark={line.isSame ? "" : "removed"} sign="−" />
              <Line line={line.after} mark={line.isSame ? "" : "added"} sign="+" />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ line, mark, sign }: { line: AlignedLine["before"]; mark: string; sign: string }) {
  if (line === null) return <td className="absent" />;
  return (
    <td className={mark}>
      <pre>
        {mark ? sign : " "} {line}
      </pre>
    </td>
  );
}
