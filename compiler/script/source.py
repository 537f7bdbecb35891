"""The text of a script: limits on its size, its syntax tree, and excerpts for errors."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterator

from compiler.error_codes import ScriptErrorCode
from compiler.executor.named_type import named_type
from compiler.script.error import ScriptError

# A chosen bound, far above the scripts of models: it limits the memory of Python's parser.
MAX_BYTES = 1_000_000
# Python's parser takes seconds for a text of only marks. In scripts, one of six characters is one.
MAX_MARKS = 100_000
MAX_DEPTH = 120  # each level of the tree costs the parser a few frames of the stack
MAX_NODES = 200_000
# Python's parser needs quadratic time for f-strings with many braces; the dialect needs few.
MAX_BRACES = 2_000

_MARKS = "()[]{}.,:;=+-*/%<>&|^~@\n\"'"
_LEAVES = frozenset({ast.Name, ast.Constant})
_LONGEST = 1_000  # characters of a message, which may quote a name
_EXCERPT = 160  # characters
_WARNINGS = threading.Lock()


class Source:
    """A script's text and its name in messages."""

    def __init__(self, text: str, filename: str, *, is_indented: bool = False) -> None:
        if not isinstance(text, str):
            raise TypeError(f"expected the text of a script, got {named_type(text)}")
        text = text.removeprefix("\ufeff")  # the byte order mark that some editors write
        self._lines = re.split(r"\r\n|\r|\n", text)
        # The indentation that was removed before parsing, for columns in errors.
        self._margin = _margin(self._lines) if is_indented else 0
        self._text = _dedented(self._lines, self._margin) if self._margin else text
        self._filename = filename

    def tree(self) -> ast.Module:
        """Return the syntax tree.

        Raises:
            ScriptError: If the text is not Python, or too long, or nested too deeply.
        """
        try:
            size_bytes = len(self._text.encode())
        except UnicodeEncodeError as error:
            line, column = self._place_of(error.start)
            raise self.error_at("the text is not valid Unicode", line, column) from None
        if size_bytes > MAX_BYTES:
            raise self.error_at(
                f"the script has {size_bytes} bytes: expected {MAX_BYTES} at most", code="limit"
            )
        if sum(map(self._text.count, _MARKS)) > MAX_MARKS:
            raise self.error_at(
                f"the script has more than {MAX_MARKS} marks and lines", code="limit"
            )
        if self._text.count("{") > MAX_BRACES:
            raise self.error_at(f"the script has more than {MAX_BRACES} braces", code="limit")
        tree = self._parse()
        for number, (node, depth) in enumerate(_walk(tree)):
            if depth > MAX_DEPTH:
                raise self.error(f"nested deeper than {MAX_DEPTH} levels", node, code="limit")
            if number > MAX_NODES:
                raise self.error(f"the script has more than {MAX_NODES} parts", node, code="limit")
        return tree

    def _parse(self) -> ast.Module:
        try:
            # Python warns of `1if x`, but the caller did not write the text and can't fix it.
            # Warning filters are global to the process, so a lock guards them.
            with _WARNINGS, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self._text)
        except SyntaxError as error:
            line, column = error.lineno or 1, (error.offset or 1) + self._margin
            end = (error.end_offset or 0) + self._margin
            width = end - column if error.end_lineno == line else 1
            raise self.error_at(error.msg, line, column, width) from None
        except (RecursionError, MemoryError):
            raise self.error_at("the script is nested too deeply", code="limit") from None
        except ValueError as error:
            raise self.error_at(str(error)) from None

    def mentions(self, words: str) -> bool:
        """Return whether the text contains these characters."""
        return words in self._text

    def error(self, message: str, node: ast.AST, code: ScriptErrorCode = "syntax") -> ScriptError:
        """Return an error at a node of the tree."""
        line = getattr(node, "lineno", 1)
        start = self._characters(line, getattr(node, "col_offset", 0))
        same_line = getattr(node, "end_lineno", None) == line
        end = self._characters(line, getattr(node, "end_col_offset", 0)) if same_line else start + 1
        return self.error_at(message, line, start + 1, end - start, code)

    def error_at(
        self,
        message: str,
        line: int = 1,
        column: int = 1,
        width: int = 1,
        code: ScriptErrorCode = "syntax",
    ) -> ScriptError:
        """Return an error at a line and column."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        # A very long line would hide the message: quote an excerpt around the position.
        start = max(0, column - _EXCERPT // 2) if len(text) > _EXCERPT else 0
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]} ..."
        return ScriptError(
            message,
            line=line,
            column=max(1, column),
            text=text[start : start + _EXCERPT],
            caret=max(0, column - 1 - start),
            width=width,
            code=code,
            filename=self._filename,
        )

    def _characters(self, line: int, utf8_offset: int) -> int:
        """Convert an offset in bytes, as in the syntax tree, to one in characters."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        encoded = text[self._margin :].encode()[:utf8_offset]
        return self._margin + len(encoded.decode(errors="ignore"))

    def _place_of(self, index: int) -> tuple[int, int]:
        before = re.split(r"\r\n|\r|\n", self._text[:index])
        return len(before), len(before[-1]) + 1


def _dedented(lines: list[str], margin: int) -> str:
    # A comment may be indented less than the code around it.
    return "\n".join(line.lstrip() if line[:margin].strip() else line[margin:] for line in lines)


def _margin(lines: list[str]) -> int:
    """Return the indentation of the first non-empty line."""
    return next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes with their depth, without operators and other leaf markers."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if type(node) in _LEAVES:
            continue
        depth += 1
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                stack.extend((child, depth) for child in value if isinstance(child, ast.AST))
            elif isinstance(value, ast.AST) and value._fields:
                stack.append((value, depth))
