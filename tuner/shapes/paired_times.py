"""Times of a few kernels in turns, so that other load of a host disturbs them alike.

A kernel is timed once at a size, within a tenth of a second. If something else runs on the core
then, it seems half as fast as it is, and the dispatcher would avoid it there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from compiler.runtime.measurement import Measurement
from tuner.measurer.comparer import Comparer
from tuner.shapes.time_matrix import TimeMatrix, workload_at
from tuner.task import Task

NUM_ROUNDS = 3
"""Rounds at a size: the median is right if one of them is disturbed. Chosen."""
FAR = 1.5
"""A kernel that took so many times as long as the best is not compared with it. If only other load
made it as slow, one of those that are compared is nearly as fast. Chosen.
"""

Floats = npt.NDArray[np.float64]


def compared(
    program: Task,
    matrix: TimeMatrix,
    comparer: Comparer,
    affords: Callable[[float], bool] = lambda _: True,
) -> TimeMatrix:
    """Return the times of kernels in turns, at the sizes that there is time for.

    Args:
        program: The symbolic program, and its target.
        matrix: What each kernel took alone.
        comparer: Times them in turns.
        affords: Returns whether there is time for so many seconds more.
    """
    secs = matrix.secs.copy()
    slowest_secs = 0.0
    for column, of_size in enumerate(matrix.sizes):
        alone = matrix.secs[:, column]
        rows = np.flatnonzero(alone <= FAR * alone.min())
        if len(rows) < 2:
            continue
        if not affords(slowest_secs):
            break
        begun_secs = time.monotonic()
        kernels = [matrix.kernels[row] for row in rows]
        rounds = list[Sequence[Measurement]]()
        for measured in comparer.compare(workload_at(program, of_size), kernels, NUM_ROUNDS, 0):
            rounds.append(measured)
            if not affords(0.0):
                break
        if rounds:
            secs[rows, column] = paired_secs(alone[rows], rounds)
        slowest_secs = max(slowest_secs, time.monotonic() - begun_secs)
    return replace(matrix, secs=secs)


def paired_secs(alone: Floats, rounds: Sequence[Sequence[Measurement]]) -> Floats:
    """Return the times of kernels by their ratios within rounds; infinity for a failure.

    The fastest has its shortest sample, alone or in a round. Each other has that times the median
    over rounds of its ratio to the fastest.

    Args:
        alone: What each kernel took alone.
        rounds: A measurement of each in each round.
    """
    secs = np.array([[m.best_secs if m.ok else np.inf for m in measured] for measured in rounds])
    is_correct = np.isfinite(secs).all(axis=0)
    paired = np.full_like(alone, np.inf)
    if is_correct.any():
        secs, alone = secs[:, is_correct], alone[is_correct]
        fastest = int(np.argmin(np.median(secs / secs.mean(axis=1, keepdims=True), axis=0)))
        shortest = min(alone[fastest], secs[:, fastest].min())
        paired[is_correct] = shortest * np.median(secs / secs[:, [fastest]], axis=0)
    return paired
