"""The guided tour, `docs/tour.md`, run step by step: what is said, the code, what it prints.

`python -m examples.tour` waits for Enter between the steps (`--all` does not), and
`python -m examples.tour --update` writes what the code prints into the document.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[1] / "docs" / "tour.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A piece of the tour: prose, then code, then what the code prints, if the document says so."""

    prose: str
    code: str
    line: int
    shown: str | None
    span: tuple[int, int]


def steps(text: str) -> Iterator[Step]:
    """Split the document into its steps; prose after the last code belongs to none."""
    blocks = list(_BLOCK.finditer(text))
    end = 0
    for number, block in enumerate(blocks):
        if block[1] != "python":
            continue
        following = blocks[number + 1 : number + 2]
        shown = following[0] if following and following[0][1] == "text" else None
        prose, line = text[end : block.start()].strip(), text.count("\n", 0, block.start(2)) + 1
        end = (shown or block).end()
        yield Step(prose, block[2], line, shown and shown[2], (shown or block).span(2))


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the code blocks of a document: their kinds and what is in them."""
    return [(block[1], block[2]) for block in _BLOCK.finditer(text)]


def run(step: Step, namespace: dict[str, Any]) -> str:
    """Run the code of a step after the steps before it, and return what it prints."""
    # Empty lines in front, so that an error names the line of the document.
    code = compile("\n" * (step.line - 1) + step.code, str(DOCUMENT), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def fresh_namespace() -> dict[str, Any]:
    """Return what the first step starts from."""
    return {"__name__": "tour"}


def updated(text: str) -> str:
    """Return the document with what its code prints now."""
    namespace = fresh_namespace()
    ran = [(step, run(step, namespace)) for step in steps(text)]
    for step, printed in reversed(ran):
        if step.shown is not None:
            start, end = step.span
            text = text[:start] + printed + text[end:]
    return text


def main() -> None:
    """Show the tour."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="do not wait between the steps")
    parser.add_argument("--update", action="store_true", help="write what is printed now")
    args = parser.parse_args()
    text = DOCUMENT.read_text(encoding="utf-8")
    if args.update:
        DOCUMENT.write_text(updated(text), encoding="utf-8")
        return
    namespace = fresh_namespace()
    for step in steps(text):
        if step.prose:
            print(f"\n{step.prose}\n")
        print("\n".join(f">>> {line}".rstrip() for line in step.code.splitlines()))
        print(run(step, namespace), end="", flush=True)
        if not args.all and sys.stdin.isatty():
            input("[Enter] ")


if __name__ == "__main__":
    main()
