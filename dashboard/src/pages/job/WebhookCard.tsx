import type { Job } from "../../api/client";
import { Numbers } from "../../components/Numbers";
import { ago, plural } from "../../format";

type Webhook = NonNullable<Job["webhook"]>;

const STATES: Record<Webhook["state"], string> = {
  waiting: "Waits for the end of the job",
  pending: "To be delivered",
  delivered: "Delivered",
  failed: "Failed: no further attempts",
};

/** The webhook of a job or of its group: the delivery of its last event, and its last error. */
export function WebhookCard({ webhook }: { webhook: Webhook }) {
  return (
    <section className="card" aria-label="Webhook">
      <h2>Webhook</h2>
      <Numbers items={figures(webhook)} />
      {webhook.error && (
        <div className="notice wrong">
          <strong>The last attempt failed.</strong>
          <pre className="wrap">{webhook.error}</pre>
        </div>
      )}
    </section>
  );
}

function figures(webhook: Webhook) {
  const { host, state, num_attempts, next_attempt_at, delivered_at, event_id } = webhook;
  return [
    [
      "Receiver",
      <span key="host" className="mono">
        {host}
      </span>,
    ],
    ["Delivery", STATES[state]],
    ...(num_attempts ? ([["Sent", plural(num_attempts, "attempt")]] as const) : []),
    ...(next_attempt_at ? ([["Next attempt", clock(next_attempt_at)]] as const) : []),
    ...(delivered_at ? ([["Received", ago(delivered_at)]] as const) : []),
    ...(event_id
      ? ([
          [
            "Event",
            <span key="event" className="mono small">
              {event_id}
            </span>,
          ],
        ] as const)
      : []),
  ] as const;
}

function clock(moment: string): string {
  return new Date(moment).toLocaleTimeString();
}
