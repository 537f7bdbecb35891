"""Keyword arguments under the names that they had in version 0.1, which are accepted until 0.2."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from compiler.keywords import keywords_of
from loopwright.user_warnings import warn_user

P = ParamSpec("P")
T = TypeVar("T")

_CURRENT = {"trials": "max_trials", "seconds": "max_secs"}


def with_current_names(
    function: str, arguments: dict[str, Any], accepted: Collection[str]
) -> dict[str, Any]:
    """Return keyword arguments under their current names; warn about each earlier one.

    Args:
        function: The name of the function, for messages.
        accepted: The arguments of the function. Other functions may still have an earlier name.

    Raises:
        TypeError: If an argument is given under both names.
    """
    renamed = dict(arguments)
    for earlier in arguments:
        current = _CURRENT.get(earlier)
        if current is None or current not in accepted:
            continue
        if current in arguments:
            raise TypeError(f"{function}() got {current!r} twice: {earlier!r} is its earlier name")
        warn_user(f"{function}({earlier}=...) is now {function}({current}=...)", DeprecationWarning)
        renamed[current] = renamed.pop(earlier)
    return renamed


def takes_earlier_names(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function accept the earlier names of its keyword arguments."""

    @wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> T:
        names = keywords_of(function)
        return function(*args, **with_current_names(function.__name__, kwargs, names))

    return renamed
