"""Turns in rotation between callers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from service.common.errors import ServiceBusyError
from service.intake.fair_turns import FairTurns
from tests.patience import PATIENCE_SECS


class Crowd:
    """Callers, each request in a thread of its own, that leave when they are told to."""

    def __init__(self, turns: FairTurns, pool: ThreadPoolExecutor) -> None:
        self.turns = turns
        self.order: list[str] = []
        self.leave = Event()
        self._pool = pool

    def come(self, caller: str, *, stays: bool = True) -> Future[None]:
        seen = len(self.order) + self.num_waiting()
        coming = self._pool.submit(self._have_a_turn, caller, stays)
        deadline = time.monotonic() + PATIENCE_SECS
        while len(self.order) + self.num_waiting() == seen and not coming.done():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return coming

    def num_waiting(self) -> int:
        return sum(map(len, self.turns._queues.values()))

    def _have_a_turn(self, caller: str, stays: bool) -> None:
        with self.turns.turn(caller):
            self.order.append(caller)
            if stays:
                self.leave.wait(PATIENCE_SECS)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as pool:
        yield pool


def test_callers_have_turns_in_rotation(pool: ThreadPoolExecutor) -> None:
    crowd = Crowd(FairTurns(1, waiting=20, waiting_of_one=10), pool)
    first = crowd.come("many")
    coming = [crowd.come("many", stays=False) for _ in range(6)]
    coming += [crowd.come(caller, stays=False) for caller in ("few", "few", "one")]
    crowd.leave.set()
    for future in (first, *coming):
        future.result(30)
    # Those of one caller come in their order, and the others between them.
    assert crowd.order[:6] == ["many", "many", "few", "one", "many", "few"]
    assert crowd.order[6:] == ["many"] * 4


def test_no_caller_has_all_places(pool: ThreadPoolExecutor) -> None:
    crowd = Crowd(FairTurns(2, waiting=20, waiting_of_one=10), pool)
    coming = [crowd.come("many") for _ in range(3)]
    assert crowd.order == ["many"]
    crowd.come("one", stays=False).result(30)
    assert crowd.order == ["many", "one"]
    crowd.leave.set()
    for future in coming:
        future.result(30)


def test_only_so_many_wait(pool: ThreadPoolExecutor) -> None:
    crowd = Crowd(FairTurns(1, waiting=3, waiting_of_one=2), pool)
    coming = [crowd.come("many") for _ in range(3)]
    with pytest.raises(ServiceBusyError, match="try again"):
        crowd.come("many").result(30)
    coming.append(crowd.come("one"))
    with pytest.raises(ServiceBusyError):
        crowd.come("another").result(30)
    crowd.leave.set()
    for future in coming:
        future.result(30)
    with ExitStack() as stack:
        stack.enter_context(crowd.turns.turn("another"))


def test_an_error_gives_the_turn_back() -> None:
    turns = FairTurns(1, waiting=1, waiting_of_one=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn("one"):
            raise ZeroDivisionError
    assert not turns._queues
    assert not turns._running
