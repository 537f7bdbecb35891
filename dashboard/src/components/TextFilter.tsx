import { useEffect, useId, useState } from "react";

interface Props {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  /** What it may be, for the browser to offer. */
  known?: readonly string[];
}

const PAUSE_MS = 250;

/** A text that takes effect when the typing pauses. */
export function TextFilter({ label, value, onChange, placeholder = "", known = [] }: Props) {
  const [typed, setTyped] = useState({ from: value, text: value });
  const list = useId();
  // A changed address (the back button) overrides the typed text.
  const text = typed.from === value ? typed.text : value;
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => {
      onChange(text.trim());
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [text, value, onChange]);
  return (
    <label>
      <span>{label}</span>
      <input
        type="search"
        value={text}
        placeholder={placeholder}
        list={known.length ? list : undefined}
        maxLength={200}
        onChange={(event) => {
          setTyped({ from: value, text: event.target.value });
        }}
      />
      {known.length > 0 && (
        <datalist id={list}>
          {known.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  );
}
