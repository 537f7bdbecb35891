"""Run searches that share a budget, a round at a time: each goes where it gains most.

What is run next depends on the trials alone, so that searches which were interrupted go on as if
they had not been: rounds that the histories hold are replayed, the one that was under way is
completed, and then there are the same trials to choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tuner.loop.budget import StopReason
from tuner.loop.search_loop import SearchLoop
from tuner.loop.task_scheduler import Progress, choose


def interleave(
    searches: Sequence[SearchLoop],
    num_trials: Callable[[], int],
    ended: Sequence[Progress] = (),
) -> Iterator[tuple[int, StopReason]]:
    """Run searches until each has ended; yield the place of each as it ends, and why.

    The caller may take its time with one that has ended: the others wait.

    Args:
        num_trials: The trials of all together, those of `ended` included; asked before each round.
        ended: Tasks that share the trials and have ended already.
    """
    num_ended = sum(len(progress.trials) for progress in ended)

    def left() -> int:
        return num_trials() - num_ended - sum(search.num_measured for search in searches)

    running = list(range(len(searches)))

    def replayed(place: int) -> StopReason | None:
        return searches[place].replay()

    def interrupted(place: int) -> StopReason | None:
        return searches[place].interrupted()

    yield from _drop(running, replayed)
    while running:
        place = _next(searches, running, ended)
        if (reason := searches[place].run_next(left())) is not None:
            running.remove(place)
            yield place, reason
        yield from _drop(running, interrupted)


def _drop(
    running: list[int], why: Callable[[int], StopReason | None]
) -> Iterator[tuple[int, StopReason]]:
    """Take out the searches that have a reason to end, and yield them."""
    for place in list(running):
        if (reason := why(place)) is not None:
            running.remove(place)
            yield place, reason


def _next(searches: Sequence[SearchLoop], running: Sequence[int], ended: Sequence[Progress]) -> int:
    """Return the search to run a round of: one that is amid a round, or what gains most."""
    for place in running:
        if searches[place].is_midway:
            return place
    if len(running) == 1:
        return running[0]
    progress = [Progress(search.task, search.measured_trials()) for search in searches]
    return choose([*progress, *ended], running)
