import { useEffect, useState } from "react";

/** A value as it was when it last stood still for a while. */
export function usePaused<Value>(value: Value, pauseMs: number): Value {
  const [settled, setSettled] = useState(value);
  const text = JSON.stringify(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(JSON.parse(text) as Value);
    }, pauseMs);
    return () => {
      clearTimeout(timer);
    };
  }, [text, pauseMs]);
  return settled;
}
