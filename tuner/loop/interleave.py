"""Run searches that share a budget, a round at a time: each round goes to the expected best gain.

The choice depends on the trials alone, so that interrupted searches resume as if they had never
stopped: rounds in the histories are replayed, the round in progress is completed, and the choice is
then made from the same trials.
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
    """Run searches until each has ended; yield the index of each as it ends, and why.

    The other searches wait until the caller asks for the next end.

    Args:
        num_trials: Returns the trials of all together, including those of `ended`; called before
            each round.
        ended: Tasks that share the trials and have ended already.
    """
    num_ended = sum(len(progress.trials) for progress in ended)

    def left() -> int:
        return num_trials() - num_ended - sum(search.num_measured for search in searches)

    running = list(range(len(searches)))

    def replayed(index: int) -> StopReason | None:
        return searches[index].replay()

    def interrupted(index: int) -> StopReason | None:
        return searches[index].interrupted()

    yield from _drop(running, replayed)
    while running:
        index = _next(searches, running, ended)
        if (reason := searches[index].run_next(left())) is not None:
            running.remove(index)
            yield index, reason
        yield from _drop(running, interrupted)


def _drop(
    running: list[int], why: Callable[[int], StopReason | None]
) -> Iterator[tuple[int, StopReason]]:
    """Remove the searches that have a reason to end, and yield them."""
    for index in list(running):
        if (reason := why(index)) is not None:
            running.remove(index)
            yield index, reason


def _next(searches: Sequence[SearchLoop], running: Sequence[int], ended: Sequence[Progress]) -> int:
    """Return the index of the search that gets a round: one within a round, else the best gain."""
    for index in running:
        if searches[index].is_midway:
            return index
    if len(running) == 1:
        return running[0]
    progress = [Progress(search.task, search.measured_trials()) for search in searches]
    return choose([*progress, *ended], running)
