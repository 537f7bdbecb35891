"""The decisions of timing on a GPU: how often to launch, which samples count, what to do again.

Nothing here calls a GPU. `stream_clock.py` launches and reads events as these functions say.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from compiler.backends.cuda.runtime.host_gpus import GpuState
from compiler.runtime.conditions import CacheState, TimingConditions

T = TypeVar("T")

SHORT_SECS = 20e-6
"""Shorter kernels are timed in a graph of many launches: two events around a launch include some
microseconds of its start, and their resolution is 0.5 microseconds (reference of the CUDA runtime,
`cudaEventElapsedTime`).
"""
_REPLAY_SECS = 1e-3
"""Shortest duration of a graph: the resolution of events is below 0.1% of it."""
_COLD_L2_SIZES = 3
"""Arrays that are used in turns leave the L2 cache if together they are so many times its size.
Chosen: the cache does not replace exactly the oldest line.
"""
_MAX_SETS = 256
"""Limit of the sets of arrays of a graph: each is a copy. Chosen."""
WARM_UP_LAUNCHES = 3
WARM_UP_SECS = 25e-3
"""Launches before the first sample: a GPU needs them to raise its clock, and a cold one is faster
than it can sustain. Chosen.
"""
_LOSER_RATIO = 3.0
"""A kernel so many times slower than the incumbent gets no further sample. Chosen: clocks of a GPU
vary by less than a half.
"""
_MIN_SAMPLES, _MAX_SAMPLES = 10, 100
"""Samples of a kernel: at least ten, unless it is slow. Chosen."""
_CALM_SPREAD = 0.02
"""The spread of samples at which they are enough: the interquartile range, as a share of the
median. Chosen.
"""
_SAMPLING_SECS = 0.1
"""Time limit of the samples of a kernel. Chosen."""
_LEAST_SAMPLES = 3
"""Samples of a slow kernel: the least that have a median."""
_MAX_ATTEMPTS = 3
_COOL_SECS = 1.0
"""Attempts to take samples at full clock, and the pause before the next. Chosen: a GPU cools by
some degrees a second.
"""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A graph of launches that use several sets of arrays in turns.

    Attributes:
        num_sets: The number of sets.
        num_launches: The number of launches of a replay, a multiple of `num_sets`.
        l2: Whether a launch finds its arrays in the L2 cache.
    """

    num_sets: int
    num_launches: int
    l2: CacheState


def rotation(set_bytes: int, l2_bytes: int, launch_secs: float, free_bytes: int) -> Rotation:
    """Return the graph for a short kernel.

    Args:
        set_bytes: The size of all arrays of a launch.
        l2_bytes: The size of the L2 cache.
        launch_secs: The duration of a launch.
        free_bytes: The memory that the copies of arrays may take.
    """
    cold_bytes = _COLD_L2_SIZES * l2_bytes
    wanted = -(-cold_bytes // max(set_bytes, 1))
    num_sets = max(1, min(wanted, _MAX_SETS, free_bytes // max(set_bytes, 1)))
    rounds = math.ceil(_REPLAY_SECS / max(launch_secs, 1e-6) / num_sets)
    return Rotation(num_sets, max(1, rounds) * num_sets, "cold" if num_sets >= wanted else "warm")


def is_loser(secs: float, incumbent_secs: float | None) -> bool:
    """Return whether a kernel is so slow that further samples are a waste.

    Of a short one events do not tell: they include its start.

    Args:
        secs: A launch, timed by events.
        incumbent_secs: The best known time, which a graph may have measured.
    """
    if incumbent_secs is None or secs < SHORT_SECS:
        return False
    return secs > _LOSER_RATIO * incumbent_secs


def are_enough(samples: Sequence[float], spent_secs: float) -> bool:
    """Return whether no further sample is needed."""
    if len(samples) < _LEAST_SAMPLES:
        return False
    if spent_secs >= _SAMPLING_SECS or len(samples) >= _MAX_SAMPLES:
        return True
    return len(samples) >= _MIN_SAMPLES and spread(samples) <= _CALM_SPREAD


def spread(samples: Sequence[float]) -> float:
    """Return the interquartile range of two or more samples, as a share of their median."""
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / median if median else 0.0


def at_full_clock(
    take: Callable[[], T],
    state: Callable[[], GpuState | None],
    pause: Callable[[float], object],
) -> tuple[T, GpuState | None]:
    """Take samples, again if the GPU was throttled meanwhile; return them with its state.

    The last attempt counts in any case; its state says so.

    Args:
        take: Takes samples.
        state: Returns the state of the GPU; None if it is unknown.
        pause: Waits some seconds.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        samples, after = take(), state()
        if after is None or not after.is_throttled:
            return samples, after
        pause(_COOL_SECS)
    return take(), state()


def conditions(l2: CacheState, state: GpuState | None) -> TimingConditions:
    """Return the conditions of samples."""
    if state is None:
        return TimingConditions(l2)
    return TimingConditions(l2, state.sm_mhz, state.watts, state.celsius, state.slowed_by)
