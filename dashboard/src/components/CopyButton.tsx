import { useState } from "react";

/** Puts a text on the clipboard, and says that it did. */
export function CopyButton({
  label,
  text,
}: {
  label: string;
  text: () => string | Promise<string>;
}) {
  const [said, setSaid] = useState("");
  return (
    <button
      type="button"
      onClick={() => {
        void copy(text).then(setSaid);
      }}
    >
      {said || label}
    </button>
  );
}

async function copy(text: () => string | Promise<string>): Promise<string> {
  try {
    await navigator.clipboard.writeText(await text());
    return "Copied";
  } catch {
    return "The browser blocked access to the clipboard";
  }
}
