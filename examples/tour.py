"""Run a page of the tutorial, `docs/tour.md` and others, step by step.

`python -m examples.tour [PAGE]` prints prose, code and output of each step, and waits for Enter
between the steps (`--all` does not). `--update` writes the current output into the page.
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

_DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    name: _DOCS / f"{name}.md" for name in ("tour", "primitives", "stages", "graphs", "scripts")
}
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A step of a page: prose, code, and the output, if the page shows it."""

    prose: str
    code: str
    line: int
    shown: str | None
    span: tuple[int, int]


def steps(text: str) -> Iterator[Step]:
    """Split a page into its steps; prose after the last code is dropped."""
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
    """Return the code blocks of a page, as pairs of kind and content."""
    return [(block[1], block[2]) for block in _BLOCK.finditer(text)]


def run(step: Step, namespace: dict[str, Any]) -> str:
    """Run the code of a step after the earlier steps, and return its output."""
    # The leading empty lines make an error name the line of the page.
    code = compile("\n" * (step.line - 1) + step.code, "docs", "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def fresh_namespace() -> dict[str, Any]:
    """Return the namespace of the first step."""
    return {"__name__": "tour"}


def updated(text: str) -> str:
    """Return a page with the current output of its code."""
    namespace = fresh_namespace()
    ran = [(step, run(step, namespace)) for step in steps(text)]
    for step, printed in reversed(ran):
        if step.shown is not None:
            start, end = step.span
            text = text[:start] + printed + text[end:]
    return text


def main() -> None:
    """Show a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", nargs="?", choices=PAGES, default="tour")
    parser.add_argument("--all", action="store_true", help="do not wait between the steps")
    parser.add_argument(
        "--update", action="store_true", help="write the current output into the page"
    )
    args = parser.parse_args()
    document = PAGES[args.page]
    text = document.read_text(encoding="utf-8")
    if args.update:
        document.write_text(updated(text), encoding="utf-8")
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
