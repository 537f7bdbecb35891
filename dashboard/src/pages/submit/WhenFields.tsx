import { newSecret, type Options } from "./draft";

interface Props {
  options: Options;
  set: (more: Partial<Options>) => void;
}

/** The hours of the measurements, and the address that is notified at the end. */
export function WhenFields({ options, set }: Props) {
  const { webhook_url, webhook_secret } = options;
  return (
    <>
      <label>
        <span>Time window</span>
        <input
          className="mono"
          placeholder="22:00-06:00 Europe/Berlin"
          pattern="\d\d:\d\d-\d\d:\d\d( [A-Za-z0-9_+\/\-]+)?"
          title="22:00-06:00, with a time zone or in UTC"
          spellCheck={false}
          value={options.window}
          onChange={(event) => set({ window: event.target.value })}
        />
      </label>
      <label>
        <span>Webhook address</span>
        <input
          type="url"
          className="mono"
          placeholder="https://ci.example/tuned"
          pattern="https?://.+"
          maxLength={2000}
          value={webhook_url}
          onChange={(event) => {
            const url = event.target.value;
            set({ webhook_url: url, webhook_secret: webhook_secret || (url && newSecret()) });
          }}
        />
      </label>
      {webhook_url && (
        <label>
          <span>Webhook secret: copy it to the receiver now, it is not shown again</span>
          <input
            className="mono"
            required
            pattern="whsec_.+"
            maxLength={100}
            spellCheck={false}
            value={webhook_secret}
            onChange={(event) => set({ webhook_secret: event.target.value })}
          />
        </label>
      )}
    </>
  );
}
