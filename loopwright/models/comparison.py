"""The comparison of whole models, which take turns, so that schedules are timed in place.

At the end of a search, models take turns of which each has another schedule of every program; a
program gets the schedule under which its calls took the shortest time, between the other programs
and with their data in the caches. Then the model of these schedules takes turns with that of the
first proposals, and the faster one is the result.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.executor.dtypes import numpy_dtype
from compiler.executor.executor import Executor
from compiler.executor.memory import aligned_empty
from compiler.package.plan import ModelPlan
from compiler.package.stepped_model import SteppedModel
from tuner.finish.contest import EQUIVALENCE_MARGIN, ERROR_RATE
from tuner.finish.signed_rank import shift, shift_interval

MIN_ROUNDS, MAX_ROUNDS = 10, 40
"""Rounds of turns: enough for an interval, and as many as bring little more. Chosen."""
COMPARE_SECS = 10.0
"""The time after which no further round begins. A user waits for the result. Chosen."""
TURN_SECS, MAX_RUNS = 1e-3, 20
"""In a turn, a model runs until this time has passed: one run of a small model is mostly noise.
Chosen, like the limit on these runs.
"""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The time of a tuned model beside that of the first proposals, as whole models in turns.

    Attributes:
        first_secs: The median time of a run with the first proposals.
        tuned_secs: The median time of a run with the tuned schedules.
        speedup: The centre of the ratios of both, round by round.
        interval: The interval of 95% of the speed-up.
    """

    first_secs: float
    tuned_secs: float
    speedup: float
    interval: tuple[float, float]

    @property
    def is_faster(self) -> bool:
        """Return whether the tuned model is at least as fast as the first proposals."""
        return self.speedup >= 1.0


def inputs_of(plan: ModelPlan) -> dict[str, NDArray[Any]]:
    """Return inputs of ones for a model that is timed."""
    return {p.name: np.ones(p.shape, numpy_dtype(p.dtype)) for p in plan.inputs}


def fastest_variants(plans: Sequence[ModelPlan], inputs: Arrays, seed: int) -> dict[str, int]:
    """Return, by the keys of tasks, the index of the plan whose kernel of that task is fastest.

    The first plan wins where others are faster by less than a practical difference.

    Args:
        plans: Plans of one model with the same steps.
        inputs: The inputs of the model.
        seed: Of the order of turns.
    """
    calls = [SteppedModel(plan).bind(inputs)[0] for plan in plans]
    secs = _in_turns([partial(_step_secs, steps) for steps in calls], seed)
    task_secs: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(plans))
    for index, plan in enumerate(plans):
        medians = np.median(secs[index], axis=0)
        for step, step_secs in zip(plan.steps, medians, strict=True):
            task_secs[plan.kernels[step.kernel].task][index] += float(step_secs)
    return {task: _winner(times) for task, times in task_secs.items()}


def compare_models(first: Executor, tuned: Executor, inputs: Arrays, seed: int) -> ModelComparison:
    """Time two models in turns.

    Args:
        first: The model with the first proposals.
        tuned: The same model with other schedules.
        inputs: The inputs of both.
        seed: Of the order of turns.
    """
    bound = [_bound(model, inputs) for model in (first, tuned)]
    turns = _in_turns([partial(_step_secs, [call]) for call in bound], seed)
    first_secs, tuned_secs = ([secs for [secs] in rounds] for rounds in turns)
    ratios = np.log(np.divide(first_secs, tuned_secs)).tolist()
    low, high = shift_interval(ratios, ERROR_RATE)
    return ModelComparison(
        statistics.median(first_secs),
        statistics.median(tuned_secs),
        float(np.exp(shift(ratios))),
        (float(np.exp(low)), float(np.exp(high))),
    )


def _in_turns(runs: Sequence[Callable[[], list[float]]], seed: int) -> list[list[list[float]]]:
    """Return what each function returned, round by round; in a round, all run in random order."""
    rng = np.random.default_rng(seed)
    results: list[list[list[float]]] = [[] for _ in runs]
    for run in runs:
        run()  # its memory and its code are new
    end = time.perf_counter() + COMPARE_SECS
    for number in range(MAX_ROUNDS):
        if number >= MIN_ROUNDS and time.perf_counter() > end:
            break
        for index in rng.permutation(len(runs)):
            results[index].append(runs[index]())
    return results


def _step_secs(calls: Sequence[Callable[[], None]]) -> list[float]:
    """Return the shortest time of each call in seconds, over the runs of a turn."""
    shortest = [math.inf] * len(calls)
    end = time.perf_counter() + TURN_SECS
    for _ in range(MAX_RUNS):
        for position, call in enumerate(calls):
            start = time.perf_counter()
            call()
            shortest[position] = min(shortest[position], time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return shortest


def _winner(secs: Sequence[float]) -> int:
    fastest = min(range(len(secs)), key=lambda index: secs[index])
    return fastest if secs[fastest] < (1 - EQUIVALENCE_MARGIN) * secs[0] else 0


def _bound(model: Executor, inputs: Arrays) -> Callable[[], None]:
    outputs = {x.name: aligned_empty(x.shape, x.dtype) for x in model.outputs}
    return model.bind(dict(inputs), outputs)
