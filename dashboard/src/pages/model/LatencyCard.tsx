import type { Model } from "../../api/client";
import { LinePlot } from "../../charts/LinePlot";
import { tickSecs } from "../../charts/ticks";
import { colorOf } from "../../components/colors";
import { secs } from "../../format";

/** The projected latency of the model, as its tasks improved. */
export function LatencyCard({ history }: { history: Model["history"] }) {
  const first = history[0];
  const last = history.at(-1);
  return (
    <section className="card" aria-label="Latency">
      <h2>Projected latency over time</h2>
      {first && last ? (
        <>
          <LinePlot
            label={`Projected latency over time: from ${secs(first.latency_secs)} to ${secs(last.latency_secs)}`}
            x={history.map(({ at }) => Date.parse(at) / 1000)}
            lines={[
              {
                label: "projected latency",
                color: colorOf(0),
                values: history.map(({ latency_secs }) => latency_secs),
                isStepped: true,
              },
            ]}
            format={tickSecs}
            isTime
            isLog
          />
          <p className="quiet small">
            Of the tasks with jobs, by their shortest samples: {secs(first.latency_secs)} at first,
            now {secs(last.latency_secs)}.
          </p>
        </>
      ) : (
        <p className="quiet">It is known once each task has a correct trial.</p>
      )}
    </section>
  );
}
