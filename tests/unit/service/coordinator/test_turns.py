from __future__ import annotations

from threading import Event, Thread
from time import monotonic, sleep

from service.coordinator.turns import Turns
from tests.patience import PATIENCE_SECS


def never() -> bool:
    return False


def wait_for_waiting(turns: Turns, num: int) -> None:
    end = monotonic() + PATIENCE_SECS
    while len(turns._waiting) < num:
        assert monotonic() < end
        sleep(0.001)


def test_the_highest_priority_is_next_then_who_came_first() -> None:
    turns, order = Turns(), list[str]()

    def take(name: str, priority: int) -> None:
        with turns.turn(priority, never) as has_turn:
            assert has_turn
            order.append(name)

    threads = []
    with turns.turn(0, never):
        for name, priority in (("first", 0), ("second", 0), ("urgent", 5), ("last", -1)):
            threads.append(Thread(target=take, args=(name, priority)))
            threads[-1].start()
            wait_for_waiting(turns, len(threads))
        assert order == []
    for thread in threads:
        thread.join(PATIENCE_SECS)
    assert order == ["urgent", "first", "second", "last"]


def test_a_thread_that_gives_up_has_no_turn_and_delays_none() -> None:
    turns, gives_up, had_turn = Turns(), Event(), list[bool]()

    def take() -> None:
        with turns.turn(9, gives_up.is_set) as has_turn:
            had_turn.append(has_turn)

    with turns.turn(0, never):
        thread = Thread(target=take)
        thread.start()
        wait_for_waiting(turns, 1)
        gives_up.set()
        thread.join(PATIENCE_SECS)
    with turns.turn(0, never) as has_turn:
        assert (had_turn, has_turn) == ([False], True)


def test_an_error_ends_a_turn() -> None:
    turns = Turns()
    try:
        with turns.turn(0, never):
            raise ValueError
    except ValueError:
        pass
    with turns.turn(0, never) as has_turn:
        assert has_turn
