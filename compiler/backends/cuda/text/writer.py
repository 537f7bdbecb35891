"""Lines of source code with their indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compiler.ir.text.names import Names


class Writer:
    """Collects the lines of a function; blocks in braces are scopes of names.

    Args:
        names: The names of the function.
    """

    def __init__(self, names: Names) -> None:
        self.lines: list[str] = []
        self._names = names
        self._depth = 1

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " * self._depth + text)

    def pragma(self, text: str) -> None:
        """Add a directive for the next loop."""
        self.line(f"#pragma {text}")

    @contextmanager
    def braces(self, head: str, end: str = "}") -> Iterator[None]:
        """Open a block after `head`; names that are bound inside end with it."""
        self.line(f"{head} {{")
        self._depth += 1
        with self._names.scope():
            yield
        self._depth -= 1
        self.line(end)
