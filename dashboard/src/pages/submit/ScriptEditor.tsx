import { useRef } from "react";

import { splitAt, type Mistake } from "./draft";

interface Props {
  value: string;
  mistake: Mistake | null;
  onChange: (value: string) => void;
}

/** A text with numbered lines, in which a mistake is marked where it is. */
export function ScriptEditor({ value, mistake, onChange }: Props) {
  const behind = useRef<HTMLDivElement>(null);
  const lines = value.split("\n");
  return (
    <div className="editor">
      <div ref={behind} className="behind" aria-hidden="true">
        {lines.map((line, place) => (
          <div key={place} className={mistake?.line === place + 1 ? "line wrong" : "line"}>
            <span className="gutter">{place + 1}</span>
            {mistake?.line === place + 1 ? <Marked line={line} column={mistake.column} /> : line}
          </div>
        ))}
      </div>
      <textarea
        aria-label="Script of a program"
        aria-invalid={mistake !== null}
        spellCheck={false}
        autoCapitalize="off"
        wrap="off"
        value={value}
        onScroll={(event) => {
          behind.current?.scrollTo(event.currentTarget.scrollLeft, event.currentTarget.scrollTop);
        }}
        onChange={(event) => {
          onChange(event.target.value);
        }}
      />
    </div>
  );
}

function Marked({ line, column }: { line: string; column: number | null }) {
  const [before, at, after] = splitAt(line, column);
  return (
    <>
      {before}
      <mark>{at}</mark>
      {after}
    </>
  );
}
