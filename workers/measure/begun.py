"""Generators that begin when they are called, so that work is under way before it is awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar, cast

ItemT = TypeVar("ItemT")
ArgsP = ParamSpec("ArgsP")


def begins_at_call(
    generate: Callable[ArgsP, Iterator[ItemT | None]],
) -> Callable[ArgsP, Iterator[ItemT]]:
    """Make calls of a generator function run up to its first `yield`, which yields None."""

    @wraps(generate)
    def begin(*args: ArgsP.args, **kwargs: ArgsP.kwargs) -> Iterator[ItemT]:
        generator = generate(*args, **kwargs)
        first = next(generator)
        assert first is None, "the first yield marks the end of the beginning"
        return cast(Iterator[ItemT], generator)

    return begin


@contextmanager
def closed_at_end(results: Iterator[ItemT]) -> Iterator[Iterator[ItemT]]:
    """Close an iterator after the body, if it can be closed: a generator that has begun."""
    try:
        yield results
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()
