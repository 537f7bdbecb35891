"""The types of attributes: whether a value is one of the type that an operator declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin


def declared_types(function: Callable[..., object]) -> Mapping[str, Any]:
    """Return the types of the keyword-only parameters of a function."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    keywords = (each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY)
    return {each.name: each.annotation for each in keywords}


def is_of_type(value: object, declared: Any) -> bool:
    """Return whether a value is of a type: a class, a union, literals or tuples of such types.

    An integer is a float too, and a Boolean is no integer.
    """
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return any(is_of_type(value, each) for each in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and _are_of_types(value, arguments)
    if declared is None:
        return value is None
    if isinstance(value, bool):
        return declared is bool
    return isinstance(value, (int, float) if declared is float else declared)


def _are_of_types(values: tuple[object, ...], types: tuple[Any, ...]) -> bool:
    if types[-1] is Ellipsis:
        return all(is_of_type(value, types[0]) for value in values)
    return len(values) == len(types) and all(map(is_of_type, values, types))
