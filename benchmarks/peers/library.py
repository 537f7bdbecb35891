"""The contract of libraries in benchmarks: they prepare a workload, which then runs repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks import RESULTS
from benchmarks.workloads.workload import Array, BenchmarkWorkload

FIRST_SEED = 1
"""The seed of MetaSchedule whose schedules the table of kernels shows."""


def metaschedule_path(name: str, threads: int, seed: int = FIRST_SEED) -> Path:
    """Return the file that holds the best schedule that MetaSchedule found for a workload."""
    return RESULTS / f"metaschedule-t{threads}" / f"{name}.{seed}.json"


class NotTunedError(Exception):
    """A workload has no tuned schedule; this is not a failure of a library."""


@dataclass(frozen=True)
class Prepared:
    """A workload that is ready to run.

    Attributes:
        run: Runs it once, on the same inputs each time.
        output: Returns the result of the last run.
        check: An additional check of that result, which raises an error if it is wrong.
        note: A remark on the results, such as the number of trials.
    """

    run: Callable[[], object]
    output: Callable[[], Array]
    check: Callable[[], None] | None = None
    note: str = ""


@dataclass(frozen=True)
class Ceiling:
    """A bound of the machine for a workload.

    Attributes:
        sample: Measures for some seconds; returns the minimum seconds of one run.
        note: The name of the bound.
    """

    sample: Callable[[float], float]
    note: str


class Library(Protocol):
    """A module that a worker process loads; `threads` is set once, before anything is prepared."""

    def start(self, threads: int) -> dict[str, str]:
        """Set the number of threads; return the versions of the libraries."""
        ...

    def prepare(self, workload: BenchmarkWorkload, backend: str) -> Prepared | Ceiling:
        """Prepare a workload; any exception means that the library does not support it."""
        ...
