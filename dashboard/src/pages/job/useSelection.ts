import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

import {
  NOTHING,
  readSelection,
  withCondition,
  writeSelection,
  type Condition,
  type Selection,
  type Span,
} from "../../charts/selection";

export type Conditions = Partial<Record<Condition, Span | string | undefined>>;

export interface SelectionHandle {
  selection: Selection;
  /** Set conditions, or drop those that are undefined; the others stay. */
  select: (changes: Conditions) => void;
  clear: () => void;
}

/** The selection that stands in the address. */
export function useSelection(): SelectionHandle {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const selection = useMemo(() => readSelection(new URLSearchParams(text)), [text]);
  const change = useCallback(
    (make: (before: Selection) => Selection) => {
      setParams((before) => writeSelection(make(readSelection(before)), before), {
        replace: true,
        preventScrollReset: true,
      });
    },
    [setParams],
  );
  const select = useCallback(
    (changes: Conditions) => {
      const pairs = Object.entries(changes) as [Condition, Span | string | undefined][];
      change((before) =>
        pairs.reduce((made, [name, value]) => withCondition(made, name, value), before),
      );
    },
    [change],
  );
  const clear = useCallback(() => {
    change(() => NOTHING);
  }, [change]);
  return { selection, select, clear };
}

/** An option of a view in the address; the first is the default. */
export function useOption<Value extends string>(
  name: string,
  values: readonly [Value, ...Value[]],
): [Value, (value: Value) => void] {
  const [params, setParams] = useSearchParams();
  const given = values.find((value) => value === params.get(name)) ?? values[0];
  return [
    given,
    (value) => {
      setParams(
        (before) => {
          const made = new URLSearchParams(before);
          if (value === values[0]) made.delete(name);
          else made.set(name, value);
          return made;
        },
        { replace: true, preventScrollReset: true },
      );
    },
  ];
}
