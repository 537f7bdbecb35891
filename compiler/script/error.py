"""The error of a script that is not a legal program."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable

from compiler.error_codes import ScriptErrorCode
from compiler.user_errors import UsageError

_WORDS: dict[type[ast.AST], str] = {
    ast.Attribute: "an attribute",
    ast.ClassDef: "a class",
    ast.Delete: "a deletion",
    ast.Dict: "a dictionary",
    ast.Expr: "a value that is not used",
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


class ScriptError(UsageError, ValueError):
    """A script that is not a legal program, with the position and what was expected.

    Attributes:
        message: What is wrong, without the position.
        line: The line, from 1.
        column: The column in characters, from 1.
        code: What is wrong, as one of `compiler.error_codes.SCRIPT_ERROR_CODES`.
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
        code: ScriptErrorCode = "syntax",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.filename = filename
        self.code: ScriptErrorCode = code
        self._text = text
        self._caret = caret
        self._width = width

    def __str__(self) -> str:
        """Render the message and the line, with carets under the position."""
        head = f"{self.filename}:{self.line}:{self.column}: {self.message}"
        if not self._text:
            return head
        gutter = f"{self.line:5} | "
        before = self._text[: self._caret]
        # Tabs stay tabs, so that the carets line up with the text.
        margin = "".join("\t" if char == "\t" else " " for char in before)
        carets = "^" * max(1, min(self._width, len(self._text) - len(before)))
        return f"{head}\n{gutter}{self._text}\n{'':5} | {margin}{carets}"


def described(node: ast.AST) -> str:
    """Return the name of a syntax node for messages."""
    if isinstance(node, ast.Constant):
        return "a string" if isinstance(node.value, str) else repr(node.value)
    return _WORDS.get(type(node), type(node).__name__.lower())


def near(name: str, names: Iterable[str]) -> str:
    """Return ": did you mean ...?" with the nearest option; empty if none is near."""
    matches = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {matches[0]}?" if matches else ""
