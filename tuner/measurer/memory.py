"""A measurer that calls a function: for tests, and for cost formulas instead of clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from compiler.ir.core.program import IRModule
from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.task import Task


class MemoryMeasurer:
    """Returns `cost(candidate)`; records its candidates in `asked`.

    Args:
        cost: Returns the measurement of a candidate, or its run time in seconds.
        completion_seed: If given, results come in a random order that it determines, as they do
            from several workers; otherwise in the order of the candidates.
    """

    def __init__(
        self,
        cost: Callable[[Candidate], Measurement | float],
        completion_seed: int | None = None,
    ) -> None:
        self.asked: list[Candidate] = []
        self._cost = cost
        self._rng = None if completion_seed is None else np.random.default_rng(completion_seed)

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's measurement; see `Measurer`."""
        order = np.arange(len(candidates))
        if self._rng is not None:
            self._rng.shuffle(order)
        for index in order.tolist():
            self.asked.append(candidates[index])
            yield index, self._measured(candidates[index])

    def measure_module(self, task: Task, module: IRModule) -> Measurement:
        """Return a correct measurement; see `ModuleMeasurer`."""
        return Measurement((1.0,))

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds that are all the same; see `Comparer`."""
        for _ in range(num_rounds):
            yield [self._measured(candidate) for candidate in candidates]

    def _measured(self, candidate: Candidate) -> Measurement:
        answer = self._cost(candidate)
        return answer if isinstance(answer, Measurement) else Measurement((answer,))
