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
from random import Random

from pydantic import ValidationError

from compiler.executor.cores import available_cores
from service.common.errors import UnprocessableError
from service.intake.workload_text import look_here, read_here
from service.wire.requests import Workload
from tests.property.fuzzing import Found, run_campaign, try_all
from tests.property.generators.mutated_scripts import corpus, mutated


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


def run_scripts(seed: int, numbers: range) -> Found:
    """Check scripts in this process."""
    return try_all(numbers, lambda number: take_in(text_of(seed, number)))


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
    return run_campaign("script", run_scripts, seed=args.seed, count=args.scripts, jobs=args.jobs)


if __name__ == "__main__":
    sys.exit(main())
