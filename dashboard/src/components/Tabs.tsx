import { useId, useState, type KeyboardEvent, type ReactNode } from "react";

interface Props {
  label: string;
  tabs: readonly (readonly [string, ReactNode])[];
}

/** Panels of which one is shown; the arrow keys move between their tabs. */
export function Tabs({ label, tabs }: Props) {
  const [chosen, setChosen] = useState(0);
  const id = useId();
  function move(event: KeyboardEvent<HTMLElement>) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (chosen + step + tabs.length) % tabs.length;
    setChosen(next);
    (event.currentTarget.children[next] as HTMLElement).focus();
  }
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" onKeyDown={move}>
        {tabs.map(([name], index) => (
          <button
            key={name}
            role="tab"
            id={`${id}-tab-${index}`}
            aria-controls={`${id}-panel`}
            aria-selected={index === chosen}
            tabIndex={index === chosen ? 0 : -1}
            onClick={() => {
              setChosen(index);
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${chosen}`}>
        {tabs[chosen]?.[1]}
      </div>
    </>
  );
}
