"""Methods that are described once, for blocking and asynchronous clients.

`@request` turns a method that returns a plan into one that runs it: at once on a `Blocking` object,
when awaited on an `Awaiting` one. `@stream` does the same for iterators.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from compiler.keywords import check_keywords, keywords_of
from loopwright.client.async_connection import AsyncConnection
from loopwright.client.connection import Connection
from loopwright.client.steps import Plan, Stream
from loopwright.earlier_names import with_current_names

P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """Runs its plans at once."""

    _connection: Connection


class Awaiting:
    """Runs its plans when they are awaited."""

    _connection: AsyncConnection


class request(Generic[P, T]):  # noqa: N801 - a decorator
    """A method whose plan returns one result."""

    def __init__(self, plan: Callable[Concatenate[Any, P], Plan[T]]) -> None:
        self._plan = plan
        self._keywords = keywords_of(plan)
        update_wrapper(self, plan)  # type: ignore[arg-type] # it is no function, yet documented as one

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Awaiting, kind: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        """Bind the method to the object whose connection runs it."""
        if owner is None:
            return self._plan

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            name = self._plan.__name__
            options = with_current_names(name, kwargs, self._keywords)
            check_keywords(name, options, self._keywords)
            return owner._connection.run(self._plan(owner, *args, **options))

        return update_wrapper(call, self._plan)


class stream(Generic[P, T]):  # noqa: N801 - a decorator
    """A method whose plan yields items."""

    def __init__(self, plan: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self._plan = plan
        self._keywords = keywords_of(plan)
        update_wrapper(self, plan)  # type: ignore[arg-type] # as above

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, owner: Awaiting, kind: type) -> Callable[P, AsyncGenerator[T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        """Bind the method to the object whose connection runs it."""
        if owner is None:
            return self._plan

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            check_keywords(self._plan.__name__, kwargs, self._keywords)
            return owner._connection.items(self._plan(owner, *args, **kwargs))

        return update_wrapper(call, self._plan)
