import type { UseQueryResult } from "@tanstack/react-query";

import type { Summary } from "../../api/plots";
import { Answer } from "../../components/Answer";
import { percent, secs } from "../../format";

type Part = keyof Summary["time"];

const PARTS: readonly (readonly [Part, string, string, string])[] = [
  ["propose", "Propose", "search and model training", "#3b82c4"],
  ["build", "Build", "compilation, total of all workers", "#a35bc4"],
  ["check", "Check", "comparison with the reference", "#d1761f"],
  ["time", "Time", "timed kernel runs", "#2f9e5b"],
  ["finish", "Finish", "final comparison of the best trials", "#2a9d9d"],
  ["wait", "Wait", "time in the queue", "#8a6d5a"],
];

/** What the time of a job was spent on. */
export function SpentCard({ summary }: { summary: UseQueryResult<Summary> }) {
  return (
    <section className="card">
      <h2>Time by phase</h2>
      <Answer query={summary}>{({ time }) => <Spent time={time} />}</Answer>
    </section>
  );
}

function Spent({ time }: { time: Summary["time"] }) {
  const total = PARTS.reduce((sum, [part]) => sum + (time[part] ?? 0), 0) || 1;
  return (
    <>
      <div className="stacked" aria-hidden="true">
        {PARTS.map(([part, , , color]) => (
          <span
            key={part}
            style={{ background: color, width: `${(100 * (time[part] ?? 0)) / total}%` }}
          />
        ))}
      </div>
      <table className="tight">
        <tbody>
          {PARTS.filter(([part]) => time[part] !== null).map(([part, name, what, color]) => (
            <tr key={part}>
              <th scope="row">
                <span className="swatch" style={{ background: color }} /> {name}
              </th>
              <td className="quiet small wide">{what}</td>
              <td className="number">{secs(time[part])}</td>
              <td className="number">{percent((time[part] ?? 0) / total, 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
