"""The steps of a client method, which either transport runs.

A method is described once, as a plan: a generator that yields steps (a request, a pause, slow local
work), receives each step's result, and returns the method's result. An error of a step is thrown
into it. A stream is a plan that also yields items.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeAlias, TypeVar

import httpx2
from pydantic import BaseModel

T = TypeVar("T")

Param: TypeAlias = str | int | float | bool | None
Params: TypeAlias = Mapping[str, Param | Sequence[Param]]

KEY = "Idempotency-Key"
_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


@dataclass(frozen=True)
class HttpCall:
    """A request; its result is the response, which is not an error.

    `is_query` marks a POST that changes nothing, or that is safe to repeat.
    """

    method: str
    path: str
    body: BaseModel | None = None
    params: Params = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_query: bool = False

    @property
    def may_repeat(self) -> bool:
        """Whether the request is safe to repeat if it may have arrived."""
        return self.method in _REPEATABLE or self.is_query or KEY in self.headers


@dataclass(frozen=True)
class Download:
    """A request whose answer goes to a file, which appears when it is complete."""

    path: str
    file: Path
    params: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Upload:
    """A request that sends a file; it is safe to repeat."""

    path: str
    file: Path


@dataclass(frozen=True)
class Pause:
    """Wait."""

    secs: float


@dataclass(frozen=True)
class LocalWork(Generic[T]):
    """Slow local work; its result is the step's result."""

    act: Callable[[], T]


@dataclass(frozen=True)
class Listen:
    """Open a job's stream of events, after event number `after`; close the open one."""

    path: str
    after: int


@dataclass(frozen=True)
class NextEvent:
    """Wait for the open stream; the result is an event, or None at the stream's end."""


@dataclass(frozen=True)
class Item(Generic[T]):
    """An item of a stream for its user."""

    value: T


Step: TypeAlias = HttpCall | Download | Upload | Pause | LocalWork[Any] | Listen | NextEvent
Plan: TypeAlias = Generator[Step, Any, T]
Stream: TypeAlias = Generator[Step | Item[T], Any, None]


def send(call: HttpCall) -> Plan[httpx2.Response]:
    """Send a request and return its response: a plan of one step."""
    response: httpx2.Response = yield call
    return response


def work(act: Callable[[], T]) -> Plan[T]:
    """Run slow local work: a plan of one step."""
    result: T = yield LocalWork(act)
    return result


class PlanRunner(Generic[T]):
    """A running plan or stream: the next `step`, until it `is_over`."""

    step: Step | Item[Any]
    result: T

    def __init__(self, plan: Generator[Any, Any, T]) -> None:
        self._plan = plan
        self.is_over = False
        self.resume(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._plan.close()

    def resume(self, value: Any) -> None:
        """Resume with the result of the step."""
        self._go_on(self._plan.send, value)

    def fail(self, error: Exception) -> None:
        """Continue with the error of the step; it is raised if the plan does not handle it."""
        self._go_on(self._plan.throw, error)

    def _go_on(self, act: Callable[[Any], Any], value: Any) -> None:
        try:
            self.step = act(value)
        except StopIteration as end:
            self.is_over, self.result = True, end.value


def collect(stream: Stream[T]) -> Plan[list[T]]:
    """Return all items of a stream."""
    items: list[T] = []
    with PlanRunner(stream) as runner:
        while not runner.is_over:
            if isinstance(runner.step, Item):
                items.append(runner.step.value)
                runner.resume(None)
                continue
            try:
                result = yield runner.step
            except Exception as error:
                runner.fail(error)
            else:
                runner.resume(result)
    return items
