"""The contract of comparers, which time candidates side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.task import Task


class Comparer(Protocol):
    """Times a few candidates in rounds, so that their times can be compared.

    `tests/contracts/comparer.py` holds each implementation to this.
    """

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds: one measurement a candidate, in the order of `candidates`.

        In a round all candidates run on one worker, on the same arrays, in turns; `run_secs` has
        one sample a turn. Where arrays lie, and who has which place in a turn, is drawn anew for
        each round from `seed`, and does not depend on what the candidates are.

        What goes wrong with a candidate is a measurement with an error, in each round from then
        on; an exception means that measuring itself is broken. The iterator may be closed before
        its end.
        """
        ...
