"""Mutated scripts through the service's intake, in any number: `make fuzz-scripts`.

Each script is parsed, verified, hashed, printed and read again, as `/jobs` and `/workloads/check`
do. It must be accepted, or refused with a documented error that names a position. Any other outcome
is a failure. So are more than five seconds of processor time, and growth of a process by more than
100 MB.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from random import Random

import psutil
from pydantic import ValidationError

from compiler.target.cores import available_cores
from service.common.errors import UnprocessableError
from service.intake.workload_text import look_here, read_here
from service.wire.requests import Workload
from tests.property.generators.mutated_scripts import corpus, mutated

MAX_SECS = 5.0
MAX_GROWTH_BYTES = 100 << 20


@dataclass
class Found:
    """The outcomes of some scripts."""

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


def text_of(seed: int, number: int) -> str:
    """Return one script, which follows from two numbers."""
    return mutated(Random(f"{seed}:{number}"))


def take_in(text: str) -> str:
    """Process a script as the service does; return whether it was accepted or refused.

    Raises:
        AssertionError: If an accepted script is another program when it is read again, or if the
            error of a refused script has no position.
    """
    try:
        workload = Workload(script=text)
    except ValidationError:
        return "refused as no text"
    try:
        read = look_here(workload).workload
    except UnprocessableError as error:
        _check_refusal(error)
        return "refused"
    again = read_here(Workload(script=read.script))
    assert (again.key, again.script) == (read.key, read.script), "it is read as another program"
    return "accepted"


def _check_refusal(refusal: UnprocessableError) -> None:
    assert refusal.detail.strip(), "an error says what is wrong"
    assert refusal.flaws, "an error has a place"
    assert all(flaw.pointer == "/workload/script" for flaw in refusal.flaws)


@cache
def _warm_bytes() -> int:
    """Return the size of this process after its first scripts."""
    return psutil.Process().memory_info().rss


def run_scripts(seed: int, numbers: range) -> Found:
    """Check scripts in this process."""
    found = Found()
    for number in numbers:
        text = text_of(seed, number)
        started = time.process_time()
        try:
            outcome = take_in(text)
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


def main() -> int:
    """Check scripts on all cores; return an exit code of 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make fuzz-scripts", description=__doc__)
    parser.add_argument("--scripts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="print and take in one script, by its number")
    parser.add_argument("--jobs", type=int, default=available_cores())
    args = parser.parse_args()
    sys.stdout.write(f"seed {args.seed}, {len(corpus())} scripts to begin with\n")
    if args.only is not None:
        sys.stdout.write(text_of(args.seed, args.only) + "\n")
        sys.stdout.write(take_in(text_of(args.seed, args.only)) + "\n")
        return 0
    found = Found()
    parts = [range(n, min(n + 500, args.scripts)) for n in range(0, args.scripts, 500)]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_scripts, [args.seed] * len(parts), parts):
            found.add(part)
            for number, seen in part.failures:
                sys.stdout.write(
                    f"\nscript {number} (--seed {args.seed} --only {number}):\n{seen}\n"
                )
            sys.stderr.write(f"\r{found.outcomes.total()} scripts, {len(found.failures)} failed ")
    secs, number = found.slowest
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.outcomes.items()))
    grown = found.growth_bytes >> 20
    sys.stdout.write(f"{outcomes}; slowest {secs:.2f} s (script {number}); grown by {grown} MB\n")
    return int(bool(found.failures) or found.growth_bytes > MAX_GROWTH_BYTES)


if __name__ == "__main__":
    sys.exit(main())
