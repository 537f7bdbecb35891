"""The error of a script that is not a legal program."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ScriptError(ValueError):
    """A script was refused; says where and what was expected.

    Attributes:
        message: What is wrong, without the place.
        line: The line, from 1.
        column: The column in characters, from 1.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int,
        column: int,
        text: str = "",
        caret: int = 0,
        width: int = 1,
        filename: str = "<script>",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.filename = filename
        self._text = text
        self._caret = caret
        self._width = width

    def __str__(self) -> str:
        """Render the message over the line, with carets under the place."""
        head = f"{self.filename}:{self.line}:{self.column}: {self.message}"
        if not self._text:
            return head
        gutter = f"{self.line:5} | "
        before = self._text[: self._caret]
        # Tabs stay tabs, so that the carets stand under what they mean.
        margin = "".join("\t" if char == "\t" else " " for char in before)
        carets = "^" * max(1, min(self._width, len(self._text) - len(before)))
        return f"{head}\n{gutter}{self._text}\n{'':5} | {margin}{carets}"


def near(name: str, known: Iterable[str]) -> str:
    """Return a question that names what may have been meant; nothing if nothing is near."""
    matches = difflib.get_close_matches(name, known, n=1)
    return f": did you mean {matches[0]}?" if matches else ""
