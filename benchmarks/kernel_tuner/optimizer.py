"""Our search as a strategy of Kernel Tuner, which loads this file by its path."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from kernel_tuner.strategies.wrapper import OptAlg

from benchmarks.kernel_tuner.space import KIND, ParameterSpace
from compiler.runtime.measurement import ErrorKind, Measurement
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.search.make import PROPOSERS
from tuner.search.searcher import Searcher
from tuner.trial import MeasuredTrial

NUM_RANDOM = 8
"""Configurations before the first model: the fewest that one is trained on."""
ROUND_SIZE = 4
"""The fewest configurations between two models. Compiling one takes seconds, a model 0.1 s."""
ROUND_SHARE = 1 / 16
"""Share of new configurations after which a model is trained again: a few more teach little."""


class Loopwright(OptAlg):  # type: ignore[misc]
    """Proposes configurations by one of our strategies, until Kernel Tuner ends the search."""

    def __init__(self, strategy: str = "evolutionary") -> None:
        super().__init__()
        self._proposer = PROPOSERS[strategy]

    def __call__(self, func: Any, searchspace: Any) -> tuple[tuple[Any, ...], float]:
        """Search; return the best configuration and its cost."""
        # Seeded by NumPy's state, as the strategies of Kernel Tuner are.
        seed = int(np.random.randint(1 << 31))
        space = ParameterSpace(searchspace.tune_params, searchspace.list)
        search = Searcher(
            self._proposer,
            space,
            seed,
            XGBoostModel(seed, kind=KIND) if self._proposer.uses_model else None,
            task_key=KIND,
            first=space.random_candidates(NUM_RANDOM, seed) if self._proposer.uses_model else (),
        )
        best: tuple[tuple[Any, ...], float] = ((), math.inf)
        number = 0
        while proposals := search.ask(max(ROUND_SIZE, int(number * ROUND_SHARE))):
            candidates = [proposal.candidate for proposal in proposals]
            configurations = [space.configuration(candidate) for candidate in candidates]
            costs = func.eval_all(configurations)
            best = min([best, *zip(configurations, costs, strict=True)], key=lambda each: each[1])
            measured = zip(candidates, map(_measurement, costs), strict=True)
            search.tell([MeasuredTrial(n, *each) for n, each in enumerate(measured, number)])
            number += len(candidates)
        return best


def _measurement(cost: float) -> Measurement:
    """Return a cost as a time: Kernel Tuner negates what is to be maximized."""
    if not abs(cost) < sys.float_info.max:
        return Measurement(error=ErrorKind.BUILD_ERROR)
    return Measurement((cost if cost > 0 else -1 / cost,))
