"""Functions of libraries and of this process that programs call by a name.

A name is looked up in this registry and nowhere else: no text, file or request makes a process call
a function that its owner did not register. The functions of `BUILT_IN` are registered from the
start; each states what it requires.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ..error import UnknownFunctionError
from ..named_type import named_type

_F = TypeVar("_F", bound=Callable[..., Any])
_C_FUNCTION: Any = ctypes._CFuncPtr  # type: ignore[attr-defined]


PACKED, EXTERN = "call_packed", "call_extern"
"""The forms of calls: of a Python function, and of a function in C."""


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function that programs may call.

    Attributes:
        name: The name that programs use.
        function: What runs: a Python function of arrays and numbers, or a function in C.
        num_outputs: The number of arrays, the last ones, that it writes; None if a call declares
            that by the block around it.
        is_c: Whether it is a function in C, which takes addresses.
        is_built_in: Whether it is of this project: it writes its outputs only, and takes the number
            of threads to use, `num_threads`.
    """

    name: str
    function: Callable[..., Any]
    num_outputs: int | None = None
    is_c: bool = False
    is_built_in: bool = False


BUILT_IN = {"blas.matmul": "blas", "torch.matmul": "pytorch", "torch.conv2d": "pytorch"}
"""The functions of libraries by name, `LIBRARY.FUNCTION`, and the module beside this one that has
each."""

ALLOWED_VARIABLE = "LOOPWRIGHT_ALLOWED_FUNCTIONS"
"""The environment variable by which the owner of a server or worker allows functions by name."""

HOW_TO_ALLOW = (
    "programs of others call only the functions that the owner of the server names in"
    f" ${ALLOWED_VARIABLE}"
)
"""What the owner of a server does to allow a function."""

_registered: dict[str, LibraryFunction] = {}
_allowed: frozenset[str] | None = None  # None allows all


@overload
def register_func(
    name: str, *, num_outputs: int | None = None, override: bool = False
) -> Callable[[_F], _F]: ...
@overload
def register_func(
    name: str, function: _F, *, num_outputs: int | None = None, override: bool = False
) -> _F: ...
@overload
def register_func(name: _F) -> _F: ...
def register_func(
    name: Any,
    function: Callable[..., Any] | None = None,
    *,
    num_outputs: int | None = None,
    override: bool = False,
) -> Any:
    """Let programs of this process call a function by a name; also a decorator.

        @lw.register_func("my.scale", num_outputs=1)
        def scale(x, y):                    # T.call_packed("my.scale", X, Y)
            y[...] = 2 * x

        lw.register_func("my.sum", ctypes.CDLL("./sum.so").sum)     # T.call_extern(...)

    A Python function is called by `T.call_packed` with NumPy arrays, numbers and texts. Arrays that
    the call only reads are read-only, and all are valid until the function returns. A function in
    C, a function of `ctypes`, is called by `T.call_extern` with addresses; its result is ignored.

    Args:
        name: The name; without one, a decorated function has its own.
        function: The function.
        num_outputs: The number of arrays, the last ones, that it writes. With it, a call needs no
            block with `T.reads` and `T.writes` around it.
        override: Whether to replace a function of this name.

    Raises:
        TypeError: If the name is no text, or the function can't be called.
        ValueError: If the name is taken, empty, or of a library of this project, or if
            `num_outputs` is less than 1.
    """
    if callable(name):
        return register_func(name.__name__, name)
    if not isinstance(name, str):
        raise TypeError(f"register_func takes a name, not {named_type(name)}")
    if function is None:
        return lambda decorated: register_func(
            name, decorated, num_outputs=num_outputs, override=override
        )
    if not callable(function):
        raise TypeError(f"{name}: expected a function, not {named_type(function)}")
    if not name or name in BUILT_IN:
        raise ValueError(f"a function can't be registered as {name!r}: the name is taken or empty")
    if name in _registered and not override:
        raise ValueError(f"a function is already registered as {name!r}: pass override=True")
    if num_outputs is not None and num_outputs < 1:
        raise ValueError(f"{name}: num_outputs is {num_outputs}: expected 1 or more")
    is_c = isinstance(function, _C_FUNCTION)
    _registered[name] = LibraryFunction(name, function, num_outputs, is_c)
    return function


def remove_func(name: str) -> None:
    """Remove a function that `register_func` added; kernels that are loaded keep it.

    Raises:
        KeyError: If there is none of this name.
    """
    if name not in _registered:
        raise KeyError(f"no function is registered as {name!r}")
    del _registered[name]


def allowed_functions() -> frozenset[str]:
    """Return the names that the environment allows to programs of others; none by default."""
    names = os.environ.get(ALLOWED_VARIABLE, "").split(",")
    return frozenset(name.strip() for name in names if name.strip())


def allow_only(names: Iterable[str]) -> None:
    """Refuse all functions but these in this process, from now on: it runs programs of others."""
    global _allowed  # noqa: PLW0603 - a property of the process, set once when it starts
    _allowed = frozenset(names)


def registered_func(name: str) -> LibraryFunction:
    """Return a function by its name.

    Raises:
        UnknownFunctionError: If none is registered, it is not allowed in this process, or its
            library is not installed.
    """
    if _allowed is not None and name not in _allowed:
        raise UnknownFunctionError(f"{name!r} is not allowed here: {HOW_TO_ALLOW}")
    function = _registered.get(name)
    if function is not None:
        return function
    if name not in BUILT_IN:
        names = ", ".join((*_registered, *BUILT_IN))
        raise UnknownFunctionError(
            f"no function is registered as {name!r}: lw.register_func adds one; known: {names}"
        )
    try:
        # Imported on use: a library may be large, or not installed.
        library = importlib.import_module(f".{BUILT_IN[name]}", __package__)
    except ImportError as error:
        raise UnknownFunctionError(f"{name!r} requires a library: {error}") from error
    built_in = getattr(library, name.rpartition(".")[2])
    return LibraryFunction(name, built_in, num_outputs=1, is_built_in=True)


def num_outputs_of(name: str) -> int | None:
    """Return the number of arrays that a function is declared to write; None if unknown."""
    if name in BUILT_IN:
        return 1
    function = _registered.get(name)
    return None if function is None else function.num_outputs
