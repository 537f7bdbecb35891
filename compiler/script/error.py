"""The error of a script that is not a legal program."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable

_WORDS: dict[type[ast.AST], str] = {
    ast.Attribute: "an attribute",
    ast.ClassDef: "a class",
    ast.Delete: "a deletion",
    ast.Dict: "a dictionary",
    ast.Expr: "a value that nothing is done with",
    ast.FunctionDef: "a function",
    ast.GeneratorExp: "a comprehension",
    ast.Global: "a declaration of globals",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.In: "in",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a lambda",
    ast.List: "a list",
    ast.ListComp: "a comprehension",
    ast.MatMult: "@",
    ast.NamedExpr: ":=",
    ast.NotIn: "not in",
    ast.Pow: "**",
    ast.Raise: "a raise",
    ast.Return: "a return",
    ast.Slice: "a slice",
    ast.Starred: "an unpacking",
    ast.Try: "a try",
    ast.Tuple: "a tuple",
}


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


def described(node: ast.AST) -> str:
    """Return what a part of a text is called in a message."""
    if isinstance(node, ast.Constant):
        return "a string" if isinstance(node.value, str) else repr(node.value)
    return _WORDS.get(type(node), type(node).__name__.lower())


def near(name: str, known: Iterable[str]) -> str:
    """Return a question that names what may have been meant; nothing if nothing is near."""
    matches = difflib.get_close_matches(name, known, n=1)
    return f": did you mean {matches[0]}?" if matches else ""
