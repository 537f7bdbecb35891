"""The first candidates of a search: what a model of other tasks proposes, nothing measured."""

from __future__ import annotations

from collections.abc import Iterator

from tuner.candidate import Candidate
from tuner.search.make import make_strategy
from tuner.task import Task
from tuner.warm_start import WarmStart


def first_candidates(
    task: Task, num: int, *, seed: int = 0, cost_model: bytes | None = None
) -> Iterator[Candidate]:
    """Yield the most promising candidates of a task, the best first.

    Fewer than `num` if the space has fewer; none if no schedule rule applies to the program.

    Args:
        task: The task.
        num: The number of candidates.
        seed: Of the random rows of large spaces.
        cost_model: A stored model, such as the base model; without it, estimates decide.
    """
    strategy = make_strategy("evolutionary", task, seed, WarmStart(cost_model))
    for _ in range(num):
        # One at a time: a request for several includes random candidates.
        for proposal in strategy.ask(1):
            yield proposal.candidate
