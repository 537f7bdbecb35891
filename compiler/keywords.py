"""Keyword arguments: suggest the nearest name for one that a function does not take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def suggests_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function refuse unknown keyword arguments with a suggestion."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs and not keywords_of(function).issuperset(kwargs):
            is_constructor = function.__name__ == "__init__"
            name = type(args[0]).__name__ if is_constructor else function.__name__
            check_keywords(name, kwargs, keywords_of(function))
        return function(*args, **kwargs)

    return checked


@cache  # filled by the first call: an import defines many functions that are never called
def keywords_of(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of the arguments that may be given by name."""
    parameters = inspect.signature(function).parameters.values()
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(p.name for p in parameters if p.kind in by_name and p.name != "self")


def check_keywords(function: str, names: Iterable[str], accepted: Collection[str]) -> None:
    """Refuse unknown names.

    Raises:
        TypeError: Naming the first of them, and the nearest known name.
    """
    for name in names:
        if name not in accepted:
            hint = suggestion(name, accepted)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}: {hint}")


def suggestion(name: str, accepted: Collection[str]) -> str:
    """Return a suggestion for an unknown name: the nearest known name, or else all."""
    import difflib  # noqa: PLC0415 - a process without mistakes does not need it

    near = difflib.get_close_matches(name, accepted, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(accepted))}"
