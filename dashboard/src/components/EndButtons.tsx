/** How a user ends a search: with a final comparison of the best trials, or without. */
export type Ending = "stop" | "cancel";

interface Props {
  isBusy: boolean;
  asked: Ending | undefined;
  onEnd: (how: Ending) => void;
}

/** The buttons that end the search of a job, or of all jobs of a model. */
export function EndButtons({ isBusy, asked, onEnd }: Props) {
  return (
    <>
      <button
        className="main"
        disabled={isBusy || asked !== undefined}
        title="Stop the search now, compare the best trials once more, and keep the winner"
        onClick={() => {
          onEnd("stop");
        }}
      >
        {asked === "stop" ? "Stopping…" : "Stop, keep the best"}
      </button>
      <button
        disabled={isBusy || asked === "cancel"}
        title="Stop now without a final comparison; measured trials are kept"
        onClick={() => {
          onEnd("cancel");
        }}
      >
        {asked === "cancel" ? "Cancelling…" : "Cancel"}
      </button>
    </>
  );
}
