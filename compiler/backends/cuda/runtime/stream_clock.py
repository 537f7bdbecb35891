"""The clock of work that is launched on a stream of a GPU, by events and graphs of CUDA.

`timing_plan.py` has the decisions: they are tested without a GPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import cupy

from compiler.backends.cuda.runtime.timing_plan import (
    SHORT_SECS,
    WARM_UP_LAUNCHES,
    WARM_UP_SECS,
    are_enough,
    is_loser,
    rotation,
)
from compiler.runtime.conditions import CacheState

# Larger than the L2 cache of each GPU in `compiler.target.gpus` (128 MiB at most).
_FLUSH_BYTES = 256 << 20
# Copies of arrays take at most this share of the free memory of the GPU. Chosen.
_COPIES_SHARE = 4

Launch: TypeAlias = Callable[[], object]


class StreamClock:
    """Times a function that queues work on the current stream of the current GPU.

    Long work is timed by two events around each launch, after a flush of the L2 cache, because a
    kernel of a model finds its inputs in memory more often than in the cache. Short work is timed
    in a graph whose launches use several sets of arrays in turns: a flush between them would be
    timed too, and the start of a single launch would be a part of its time.

    Args:
        launch: Queues the work.
        set_bytes: The size of the arrays that it uses.
        copies: Returns functions that queue the same work on this many further sets of arrays;
            None if there is no such function: each launch is timed by events then.
    """

    def __init__(
        self,
        launch: Launch,
        set_bytes: int,
        copies: Callable[[int], Sequence[Launch]] | None = None,
    ) -> None:
        self._launch = launch
        self._set_bytes = set_bytes
        self._copies = copies
        self._stream = cupy.cuda.Stream(non_blocking=True)  # others can't be captured in a graph
        self._first_secs: float | None = None
        self._is_warm = False
        self._graph: Any = None
        self._launches_of_graph = 0
        self.l2: CacheState = "cold"

    def mean_secs(self, calls: int) -> float:
        """Return the mean seconds a launch, over at least `calls` launches.

        The first call is cold: the result of work is checked before it runs often.
        """
        if self._first_secs is None:
            self._first_secs = self.event_secs(calls)
            return self._first_secs
        self._warm_up(self._first_secs)
        return self._mean_secs(calls)

    def event_secs(self, calls: int) -> float:
        """Return the mean seconds a launch by events, also of short work, without a warm-up."""
        return math.fsum(self._launch_secs() for _ in range(calls)) / calls

    def _mean_secs(self, calls: int) -> float:
        if self._graph is not None:
            return self._graph_secs(-(-calls // self._launches_of_graph))
        return self.event_secs(calls)

    def samples(self, incumbent_secs: float | None) -> tuple[float, ...]:
        """Return samples of the work, in seconds a launch; one if it is far from the incumbent."""
        first = min(self._launch_secs() for _ in range(2))
        if is_loser(first, incumbent_secs):
            return (first,)
        self._warm_up(first)
        samples: list[float] = []
        start = time.perf_counter()
        while not are_enough(samples, time.perf_counter() - start):
            samples.append(self._mean_secs(1))
        return tuple(samples)

    def warm_secs(self, calls: int) -> float:
        """Return the mean seconds of launches in a row, on the same arrays, without a flush."""
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        with self._stream:
            self._launch()
            start.record(self._stream)
            for _ in range(calls):
                self._launch()
            end.record(self._stream)
        self._stream.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3 / calls

    def _warm_up(self, launch_secs: float) -> None:
        """Launch until the GPU has raised its clock, and choose how to time, once."""
        if self._is_warm:
            return
        num_launches, end = 0, time.perf_counter() + WARM_UP_SECS
        while num_launches < WARM_UP_LAUNCHES or time.perf_counter() < end:
            launch_secs = min(launch_secs, self._launch_secs())
            num_launches += 1
        if launch_secs < SHORT_SECS and self._copies is not None:
            self._capture(launch_secs, self._copies)
        self._is_warm = True

    def _launch_secs(self) -> float:
        """Return the seconds of one launch with a cold L2 cache."""
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        with self._stream:
            _flush_buffer(cupy.cuda.Device().id).memset_async(0, _FLUSH_BYTES, self._stream)
            start.record(self._stream)
            self._launch()
            end.record(self._stream)
        self._stream.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def _capture(self, launch_secs: float, copies: Callable[[int], Sequence[Launch]]) -> None:
        l2_bytes = int(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["l2CacheSize"])
        free_bytes, _ = cupy.cuda.runtime.memGetInfo()
        plan = rotation(self._set_bytes, l2_bytes, launch_secs, free_bytes // _COPIES_SHARE)
        launches = [self._launch, *copies(plan.num_sets - 1)]
        with self._stream:
            self._stream.begin_capture()
            for _ in range(plan.num_launches // plan.num_sets):
                for launch in launches:
                    launch()
            self._graph = self._stream.end_capture()
        self._graph.upload(self._stream)
        self._launches_of_graph = plan.num_launches
        self.l2 = plan.l2
        self._graph_secs(1)

    def _graph_secs(self, replays: int) -> float:
        """Return the mean seconds of a launch in the graph."""
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(self._stream)
        for _ in range(replays):
            self._graph.launch(self._stream)
        end.record(self._stream)
        self._stream.synchronize()
        millis = float(cupy.cuda.get_elapsed_time(start, end))
        return millis / 1e3 / replays / self._launches_of_graph


@cache
def _flush_buffer(device: int) -> Any:
    """Return memory on the current device, which is `device`, larger than its L2 cache."""
    del device  # the key of the cache
    return cupy.cuda.alloc(_FLUSH_BYTES)
