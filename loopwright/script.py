"""The script dialect as decorators: `from loopwright.script import I, T`.

A decorated function is parsed, never run: `T.prim_func` takes its source text, and the parser makes
a program of it. Sizes, types and other constants from its surroundings are looked up in its
closure, in the enclosing functions, and in its module. Only the parser defines the names of the
dialect (`T.grid`, `T.block`, ...). Here they are placeholders, so that Python can evaluate a
signature.
"""

from __future__ import annotations

import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Any, cast, overload

from compiler.executor.named_type import named_type
from compiler.ir.core.dtypes import DTYPES, DType
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import verify_module
from compiler.ir.text.printer import script
from compiler.script import parse, parse_module
from compiler.script.parser import parse_function
from compiler.te.value import const

__all__ = ["I", "T", "ir_module", "parse", "parse_module", "script"]

_Decorator = Callable[[Callable[..., Any]], PrimFunc]


class _Name:
    """A placeholder for a name of the dialect; it can be called, indexed and have attributes."""

    def __call__(self, *_: Any, **__: Any) -> _Name:
        return self

    def __getitem__(self, _: Any) -> _Name:
        return self

    def __getattr__(self, name: str) -> _Name:
        # Python asks objects for its own protocols; those a name of the dialect does not have.
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _Type(_Name):
    """A type of the dialect; called with a number, as printed traces do, it gives that constant."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype

    def __call__(self, *values: Any, **_: Any) -> Any:
        match values:
            case (int() | float() as number,):
                return const(number, self._dtype)
            case _:
                return self


class Dialect:
    """The namespace `T`."""

    @overload
    def prim_func(self, function: Callable[..., Any]) -> PrimFunc: ...
    @overload
    def prim_func(
        self, *, private: bool = ..., s_tir: bool = ..., check_well_formed: bool = ...
    ) -> _Decorator: ...
    def prim_func(
        self,
        function: Callable[..., Any] | None = None,
        *,
        private: bool = False,
        s_tir: bool = True,
        check_well_formed: bool = True,
    ) -> PrimFunc | _Decorator:
        """Parse a Python function as a program; TVM's options have no effect.

        Raises:
            ScriptError: If its text is not a program; the error shows the position.
            ValueError: If its text cannot be found, as for a function typed at a prompt.
        """
        frame = sys._getframe(1)  # where the decorator stands
        if function is None:
            return lambda decorated: _read(decorated, sys._getframe(1))
        return _read(function, frame)

    def __getattr__(self, name: str) -> Any:
        """Return the placeholder for a name of the dialect."""
        if name.startswith("__"):
            raise AttributeError(name)
        return _Type(cast("DType", name)) if name in DTYPES else _Name()


T = Dialect()


def ir_module(namespace: type) -> IRModule:
    """Make a module of the programs in a class body, which may call each other.

    Raises:
        TypeError: If it is not a class.
        VerifyError: If a call is not legal, or a called function is missing.
    """
    if not isinstance(namespace, type):
        raise TypeError(f"expected a class of programs, got {named_type(namespace)}")
    module = IRModule(tuple(f for f in vars(namespace).values() if isinstance(f, PrimFunc)))
    verify_module(module)
    return module


class _Modules:
    """The namespace `I`."""

    @staticmethod
    def ir_module(namespace: type) -> IRModule:
        """Make a module of the programs in a class body."""
        return ir_module(namespace)

    @staticmethod
    def module_attrs(_: Mapping[str, object]) -> None:
        """Ignore the attributes of a module, which do not affect its functions."""


I = _Modules()  # noqa: E741 - as TVM calls it


def _read(function: Callable[..., Any], frame: FrameType | None) -> PrimFunc:
    """Return the program in a function's text."""
    if not isinstance(function, FunctionType):
        raise TypeError(f"expected a function, got {type(function).__name__}")
    try:
        lines, first_line = inspect.getsourcelines(function)
    except OSError as error:
        raise ValueError(
            f"the source of {function.__name__} is not available: put it in a file, or pass the "
            "text to loopwright.parse"
        ) from error
    # Empty lines in front, so that an error names the line that an editor shows.
    text = "\n" * (first_line - 1) + "".join(lines)
    around = _surroundings(function, frame)
    holders = function.__qualname__.split(".")[:-1]
    return parse_function(
        text,
        filename=inspect.getfile(function),
        around=around.__getitem__,
        module=holders[-1] if holders else None,
    )


def _surroundings(function: FunctionType, frame: FrameType | None) -> Mapping[str, object]:
    """Return the values of names around a function: nearest first."""
    closure = {
        name: cell.cell_contents
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
        if not _is_empty(cell)
    }
    scopes: list[dict[str, object]] = [closure]
    # What a signature alone names is in no closure: it was evaluated where the decorator stands.
    enclosing = [
        scope_name
        for scope_name in function.__qualname__.split(".")[:-1]
        if scope_name != "<locals>"
    ]
    while frame is not None and enclosing:
        if frame.f_code.co_name == enclosing[-1]:
            enclosing.pop()
            scopes.append(dict(frame.f_locals))
        frame = frame.f_back
    return ChainMap(*scopes, function.__globals__)


def _is_empty(cell: object) -> bool:
    """Return whether a variable of a closure has no value yet."""
    try:
        cell.cell_contents  # type: ignore[attr-defined] # noqa: B018
    except ValueError:
        return True
    return False
