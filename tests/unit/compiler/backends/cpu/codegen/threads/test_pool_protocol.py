"""The protocol of a worker's state, by exhaustion: every order of the steps that threads may take.

The steps are those of `compiler.backends.cpu.codegen.threads.thread_pool`: one access of the state
or one call of the kernel each. Two launches compete for one worker, several times, and sleepers may
wake for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import pytest

Word = Literal["IDLE", "ASLEEP", "POSTED", "RUNNING", "AWAITED"]

WORKER = 2  # its number among the threads; 0 and 1 are launches
ROUNDS = 3


@dataclass(frozen=True)
class World:
    """All that the threads share, and where each stands."""

    word: Word = "IDLE"
    owner: int | None = None  # whose claim the slot is
    posted: int | None = None  # whose task is in the slot
    ran: tuple[int, int] = (0, 0)  # how often the tasks of this round ran
    at: tuple[str, str, str] = ("claim", "claim", "look")
    rounds: tuple[int, int] = (0, 0)

    def go(self, thread: int, step: str, **changes: object) -> World:
        at = tuple(step if n == thread else here for n, here in enumerate(self.at))
        return replace(self, at=at, **changes)  # type: ignore[arg-type]

    def run(self, task: int) -> tuple[int, ...]:
        return tuple(n + (task == number) for number, n in enumerate(self.ran))


def successors(world: World, *, forgets: str = "") -> Iterator[World]:
    """Yield what the world may be after one step of one thread.

    Args:
        forgets: A step that the protocol does without, to see that it is missed.
    """
    yield from worker_steps(world, forgets)
    for launch in (0, 1):
        yield from launch_steps(world, launch, forgets)


def awaits(world: World, thread: int, now: Word, parked: Word, then: str) -> Iterator[World]:
    """Yield the steps of waiting while the state is `now`: look, sleep as `parked`, look again."""
    word = world.word
    match world.at[thread]:
        case "look":
            yield world.go(thread, "park" if word == now else then)
        case "park" if word == now:
            yield world.go(thread, "sleep", word=parked)
        case "park":
            yield world.go(thread, then)
        case "sleep":  # the kernel compares before it lets anybody sleep
            yield world.go(thread, "asleep" if word == parked else then)
        case "asleep":  # for nothing
            yield world.go(thread, "sleep" if word == parked else then)
        case _:
            pass


def wakes(world: World, thread: int, then: str) -> Iterator[World]:
    """Yield what waking one sleeper may lead to."""
    sleepers = [n for n, here in enumerate(world.at) if here == "asleep"]
    for sleeper in sleepers:
        yield world.go(sleeper, "woken").go(thread, then)
    if not sleepers:
        yield world.go(thread, then)


def worker_steps(world: World, forgets: str) -> Iterator[World]:
    if world.at[WORKER] == "woken":
        yield world.go(WORKER, "sleep" if world.word == "ASLEEP" else "take")
    yield from awaits(world, WORKER, "IDLE", "ASLEEP", "take")
    match world.at[WORKER]:
        case "take" if world.word == "POSTED":
            yield world.go(WORKER, "work", word="RUNNING")
        case "take":
            yield world.go(WORKER, "look")
        case "work":
            assert world.posted is not None
            yield world.go(WORKER, "finish", ran=world.run(world.posted))
        case "finish":
            tells = world.word == "AWAITED" and forgets != "to wake the launch"
            yield world.go(WORKER, "wake" if tells else "look", word="IDLE")
        case "wake":
            yield from wakes(world, WORKER, "look")
        case _:
            pass


def launch_steps(world: World, launch: int, forgets: str) -> Iterator[World]:
    if world.at[launch] == "woken":
        yield world.go(launch, "sleep" if world.word == "AWAITED" else "leave")
    yield from awaits(world, launch, "RUNNING", "AWAITED", "leave")
    match world.at[launch]:
        case "claim" if world.owner is None or forgets == "to claim":
            yield world.go(launch, "post", owner=launch)
        case "post":
            tells = world.word == "ASLEEP" and forgets != "to wake the worker"
            step = "wake" if tells else "take back"
            yield world.go(launch, step, word="POSTED", posted=launch)
        case "wake":
            yield from wakes(world, launch, "take back")
        case "take back" if world.word == "POSTED":
            yield world.go(launch, "look", word="IDLE", ran=world.run(launch))
        case "take back":
            yield world.go(launch, "look")
        case "leave":
            assert world.ran[launch] == 1, f"a task ran {world.ran[launch]} times"
            ran = tuple(n * (number != launch) for number, n in enumerate(world.ran))
            rounds = tuple(n + (number == launch) for number, n in enumerate(world.rounds))
            step = "claim" if rounds[launch] < ROUNDS else "done"
            yield world.go(launch, step, owner=None, ran=ran, rounds=rounds)
        case _:
            pass


def explore(*, waking: bool, forgets: str = "") -> int:
    """Visit every world; return how many there are.

    Args:
        waking: Whether sleepers may wake for nothing.

    Raises:
        AssertionError: If a task does not run once, or threads wait for ever.
    """
    seen = {World()}
    open_worlds = list(seen)
    while open_worlds:
        world = open_worlds.pop()
        after = list(successors(world, forgets=forgets))
        if not waking:
            after = [w for w in after if not woke_for_nothing(world, w)]
        is_over = world.at[:2] == ("done", "done")
        assert after or is_over, f"nobody can go on: {world}"
        fresh = set(after) - seen
        seen |= fresh
        open_worlds += fresh
    return len(seen)


def woke_for_nothing(before: World, after: World) -> bool:
    """Tell whether a sleeper went on by itself."""
    moved = [n for n in range(3) if before.at[n] != after.at[n]]
    return len(moved) == 1 and before.at[moved[0]] == "asleep"


@pytest.mark.parametrize("waking", [False, True])
def test_each_task_runs_once_and_nobody_waits_for_ever(waking: bool) -> None:
    assert explore(waking=waking) > 1000


@pytest.mark.parametrize("forgets", ["to wake the launch", "to claim"])
def test_the_exploration_sees_what_is_missing(forgets: str) -> None:
    with pytest.raises(AssertionError, match=r"nobody can go on|a task ran"):
        explore(waking=False, forgets=forgets)


def test_a_worker_that_is_not_woken_is_done_without() -> None:
    """Its task is taken back: what a lost wake-up could cost is time."""
    assert explore(waking=False, forgets="to wake the worker") > 100
