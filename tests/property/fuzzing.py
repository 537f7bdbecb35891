"""Campaigns of random inputs on all cores: what each did, the slowest, and the growth of memory.

An input follows from a seed and its number, so that one that failed can be tried again alone.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context

import psutil

MAX_SECS = 5.0
MAX_GROWTH_BYTES = 100 << 20
_PART = 500
"""Inputs of one call of a process of the pool."""


@dataclass
class Found:
    """The outcomes of some inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    growth_bytes: int = 0

    def add(self, other: Found) -> None:
        """Add the outcomes of another process."""
        self.outcomes += other.outcomes
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)
        self.growth_bytes = max(self.growth_bytes, other.growth_bytes)


@cache
def _warm_bytes() -> int:
    """Return the size of this process after its first inputs."""
    return psutil.Process().memory_info().rss


def try_all(numbers: range, attempt: Callable[[int], str]) -> Found:
    """Try inputs in this process; any exception is a failure, and so is more than `MAX_SECS`.

    Args:
        numbers: The inputs.
        attempt: Tries one, and returns its outcome.
    """
    found = Found()
    for number in numbers:
        started = time.process_time()
        try:
            outcome = attempt(number)
        except Exception:
            outcome = "failed"
            found.failures.append((number, traceback.format_exc(limit=-6)))
        secs = time.process_time() - started
        if secs > MAX_SECS:
            found.failures.append((number, f"took {secs:.1f} s"))
        found.slowest = max(found.slowest, (secs, number))
        found.outcomes[outcome] += 1
    warm_bytes = _warm_bytes()
    found.growth_bytes = psutil.Process().memory_info().rss - warm_bytes
    return found


def run_campaign(
    noun: str, run: Callable[[int, range], Found], *, seed: int, count: int, jobs: int
) -> int:
    """Try inputs on all cores and print the outcomes; return an exit code of 1 if one failed.

    Args:
        noun: What an input is, for messages.
        run: Tries inputs of a seed in a process of the pool.
        seed: The seed.
        count: The number of inputs.
        jobs: The number of processes.
    """
    found = Found()
    parts = [range(n, min(n + _PART, count)) for n in range(0, count, _PART)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(run, [seed] * len(parts), parts):
            found.add(part)
            for number, seen in part.failures:
                sys.stdout.write(f"\n{noun} {number} (--seed {seed} --only {number}):\n{seen}\n")
            sys.stderr.write(f"\r{found.outcomes.total()} {noun}s, {len(found.failures)} failed ")
    secs, number = found.slowest
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.outcomes.items()))
    grown = found.growth_bytes >> 20
    sys.stdout.write(f"{outcomes}; slowest {secs:.2f} s ({noun} {number}); grown by {grown} MB\n")
    return int(bool(found.failures) or found.growth_bytes > MAX_GROWTH_BYTES)
