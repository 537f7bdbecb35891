"""Build candidates in other processes, on other cores, while this one times kernels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context

from compiler.backends.error import BuildError
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import ScheduleError
from compiler.script.parser import parse
from compiler.target.target import Target
from workers.measure.measure import build_candidate

MAX_PROGRAMS = 32
"""Parsed programs that a builder keeps: more than the sets that take turns."""

Build = Future[bytes | None]


class CandidateBuilds:
    """Processes that build candidates.

    Args:
        num: The number of processes; with one core they share it with the timing.
        timing_core: The core that they leave to the timing.
    """

    def __init__(self, num: int, timing_core: int) -> None:
        cores = os.sched_getaffinity(0) - {timing_core} or {timing_core}
        self._pool = ProcessPoolExecutor(
            num, get_context("spawn"), initializer=os.sched_setaffinity, initargs=(0, cores)
        )

    def submit(self, script: str, target: str, traces: Sequence[str]) -> list[Build]:
        """Start to build the candidates with these traces, given as JSON."""
        return [self._pool.submit(_build, script, trace, target) for trace in traces]

    def close(self) -> None:
        """End the processes; builds that have not begun are cancelled."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def built(build: Build) -> Artifact | None:
    """Return the artifact of a build; None if it failed."""
    content = build.result()
    return None if content is None else Artifact.from_bytes(content)


def _build(script: str, trace: str, target: str) -> bytes | None:
    try:
        return build_candidate(_program(script), trace, Target(target)).to_bytes()
    except (BuildError, ScheduleError):
        return None


@lru_cache(MAX_PROGRAMS)
def _program(script: str) -> PrimFunc:
    return parse(script)
