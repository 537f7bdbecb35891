import { useCallback } from "react";
import { useSearchParams } from "react-router";

import { withText } from "./address";
import { TextFilter } from "./TextFilter";

interface TextProps {
  name: string;
  label: string;
  placeholder?: string;
  known?: readonly string[];
}

/** A text of the address. */
export function AddressText({ name, ...more }: TextProps) {
  const [params, setParams] = useSearchParams();
  const change = useCallback(
    (value: string) => {
      setParams((now) => withText(now, name, value), { replace: true });
    },
    [name, setParams],
  );
  return <TextFilter {...more} value={params.get(name) ?? ""} onChange={change} />;
}

interface SelectProps {
  name: string;
  label: string;
  options: readonly (readonly [string, string])[];
}

/** One of a few values of the address; the first of them is none. */
export function AddressSelect({ name, label, options }: SelectProps) {
  const [params, setParams] = useSearchParams();
  return (
    <label>
      <span>{label}</span>
      <select
        value={params.get(name) ?? ""}
        onChange={(event) => {
          setParams(withText(params, name, event.target.value));
        }}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
