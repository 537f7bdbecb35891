"""The script dialect as decorators: `from loopwright.script import T`.

A decorated function is read, never run: `T.prim_func` takes its source text, and the parser makes a
program of it. What the names of the dialect (`T.grid`, `T.block`, ...) are is known to the parser
alone; here they stand for nothing, so that Python can evaluate a signature that uses them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from compiler.ir.nodes import IRModule, PrimFunc
from compiler.ir.printer import script
from compiler.script import parse, parse_module

__all__ = ["T", "ir_module", "parse", "parse_module", "script"]


class _Name:
    """A name of the dialect; it can be called, indexed and looked into, and means nothing."""

    def __call__(self, *_: Any, **__: Any) -> _Name:
        return self

    def __getitem__(self, _: Any) -> _Name:
        return self

    def __getattr__(self, name: str) -> _Name:
        # Python asks objects for its own protocols; those a name of the dialect does not have.
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class Dialect:
    """The namespace `T`."""

    def prim_func(self, function: Callable[..., Any]) -> PrimFunc:
        """Read a Python function as a program.

        Raises:
            ScriptError: If its text is not a program; the error shows the place.
            ValueError: If its text cannot be found, as for a function typed at a prompt.
        """
        try:
            source_lines, first_line = inspect.getsourcelines(function)
        except OSError as error:
            raise ValueError(
                f"the text of {function.__name__} cannot be read;"
                " put it in a file, or give the text to loopwright.parse"
            ) from error
        # Empty lines in front, so that an error names the line that an editor shows.
        text = "\n" * (first_line - 1) + textwrap.dedent("".join(source_lines))
        return parse(text, filename=inspect.getfile(function))

    def __getattr__(self, name: str) -> Any:
        """Return what stands for a name of the dialect."""
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name()


T = Dialect()


def ir_module(namespace: type) -> IRModule:
    """Make a module of the programs in a class body."""
    return IRModule(tuple(f for f in vars(namespace).values() if isinstance(f, PrimFunc)))
