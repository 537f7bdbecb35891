"""Random (workload, trace) pairs in any number: `make fuzz`.

Each pair follows from a seed and its number, so that a failure can be reproduced. A failing pair is
reduced, by removing steps as long as it fails, and printed as Python.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from random import Random
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from tests.property.check_schedule import Meaning
from tests.property.generators.choice import STEPS
from tests.property.generators.schedules import RandomTrace
from tests.property.generators.workloads import KINDS, WORKLOADS

KILLED = "the process was killed"
LOGGED_PAIRS = 1000
"""Without a terminal, progress is a line after so many pairs: a long run is seen to advance."""
# Primitives that apply to few programs, so that random choices seldom try them.
SUITED = {
    "decompose_padding": ("conv1d", "conv2d", "convolution"),
    "fuse_reduction_epilogue": ("matmul_bias_relu",),
    "online_softmax": ("attention",),
    "rolling_buffer": ("max_pool2d", "pooling", "stencil"),
    "skip_masked": ("masked",),
    "winograd": ("tiled_convolution",),
}
# Primitives that apply to what another one makes.
PREPARED_BY = {"annotate_dynamic_partition": "parallel", "unannotate": "annotate"}


@dataclass
class Chooser:
    """Chooses at random and records the choices, or repeats recorded choices."""

    rng: Random
    remembered: list[int] = field(default_factory=list)
    replayed: list[int] | None = None

    def __call__(self, options: Sequence[Any]) -> Any:
        if self.replayed is None:
            number = self.rng.randrange(len(options))
        else:
            number = self.replayed.pop(0) % len(options) if self.replayed else 0
        self.remembered.append(number)
        return options[number]


@dataclass(frozen=True)
class Step:
    """A tried primitive, and the choices of its arguments."""

    name: str
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Pair:
    """A workload and its scheduling steps."""

    seed: int
    number: int
    workload: str
    shape: tuple[int, ...]
    steps: tuple[Step, ...] = ()

    @property
    def is_thorough(self) -> bool:
        """Whether all is checked after each primitive, and not at the end alone."""
        return self.number % 4 == 0 or self.workload in KINDS

    def func(self) -> PrimFunc:
        return WORKLOADS[self.workload](Chooser(Random(), replayed=list(self.shape)))


def make_pair(seed: int, number: int, counts: Counts) -> tuple[Pair, Schedule]:
    """Make a pair: take workloads and primitives in turn, and choose the rest at random.

    Raises:
        FailureError: If a primitive raises anything but a refusal.
    """
    rng = Random(f"{seed}:{number}")
    in_turn = list(STEPS)[number % len(STEPS)]
    workload = rng.choice(SUITED[in_turn]) if in_turn in SUITED else _workload_in_turn(number)
    shape = Chooser(rng)
    func = WORKLOADS[workload](shape)
    pair = Pair(seed, number, workload, tuple(shape.remembered))
    schedule = Schedule(func, seed=number)
    meaning = Meaning(func)
    steps: list[Step] = []

    def attempt(name: str) -> bool | None:
        chooser = Chooser(rng)
        trace = RandomTrace(schedule, chooser, counts.accepted, counts.refused)
        try:
            accepted = trace.attempt(name)
        except Exception as error:
            done = Step(name, tuple(chooser.remembered))
            raise FailureError(
                _with(pair, [*steps, done]), f"crash in {name}", _traceback(error)
            ) from error
        steps.append(Step(name, tuple(chooser.remembered)))
        if accepted:
            counts.scheduled[workload] += 1
            _hold(_with(pair, steps), meaning, schedule)
        return accepted

    def surround(count: int) -> None:
        for _ in range(count):
            for _ in range(20):
                if attempt(rng.choice(list(STEPS))) is not None:
                    break

    # On a program made for the primitive, earlier steps might prevent it.
    surround(0 if in_turn in SUITED else rng.randrange(4))
    if in_turn in PREPARED_BY:
        any(attempt(PREPARED_BY[in_turn]) for _ in range(8))
    any(attempt(in_turn) for _ in range(8))
    surround(rng.randrange(1, 6))
    return _with(pair, steps), schedule


def _workload_in_turn(number: int) -> str:
    """Return the workload of a pair, if its primitive has no workloads of its own."""
    others = [n for n, name in enumerate(STEPS) if name not in SUITED]
    rounds, position = divmod(number, len(STEPS))
    turn = rounds * len(others) + others.index(position)
    return list(WORKLOADS)[turn % len(WORKLOADS)]


def _with(pair: Pair, steps: Sequence[Step]) -> Pair:
    return Pair(pair.seed, pair.number, pair.workload, pair.shape, tuple(steps))


def _hold(pair: Pair, meaning: Meaning, schedule: Schedule) -> None:
    try:
        if pair.is_thorough:
            meaning.hold(schedule)
        else:
            verify(schedule.func)
    except Exception as error:
        raise FailureError(pair, _kind(error), _traceback(error)) from error


def _kind(error: Exception) -> str:
    return "wrong" if isinstance(error, AssertionError) else type(error).__name__


def redo(pair: Pair) -> Schedule:
    """Repeat the steps of a pair that still apply."""
    schedule = Schedule(pair.func(), seed=pair.number)
    meaning = Meaning(schedule.func)
    for step in pair.steps:
        chooser = Chooser(Random(), replayed=list(step.choices))
        try:
            accepted = RandomTrace(schedule, chooser).attempt(step.name)
        except Exception as error:
            raise FailureError(pair, f"crash in {step.name}", _traceback(error)) from error
        if accepted:
            _hold(pair, meaning, schedule)
    return schedule


class FailureError(Exception):
    """A failing pair: the kind of failure, and its details."""

    def __init__(self, pair: Pair, kind: str, seen: str) -> None:
        super().__init__(
            f"pair {pair.number} of seed {pair.seed} ({pair.workload}): {kind}\n{seen}"
        )
        self.pair = pair
        self.kind = kind
        self.seen = seen

    def __reduce__(self) -> tuple[type[FailureError], tuple[Pair, str, str]]:
        return FailureError, (self.pair, self.kind, self.seen)


@dataclass
class Counts:
    """The numbers of accepted and refused calls of each primitive."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    scheduled: Counter[str] = field(default_factory=Counter)  # accepted primitives, a workload
    unbuilt: int = 0  # pairs whose threads or pipelines lowering refused

    def add(self, other: Counts) -> None:
        self.accepted += other.accepted
        self.refused += other.refused
        self.scheduled += other.scheduled
        self.unbuilt += other.unbuilt

    @property
    def acceptance(self) -> float:
        tried = self.accepted.total() + self.refused.total()
        return self.accepted.total() / max(tried, 1)


def check(pair: Pair, schedule: Schedule) -> bool:
    """Check the form of a scheduled workload, and its results against the oracle.

    Returns:
        Whether it could be built. Lowering refuses some threads and pipelines.

    Raises:
        FailureError: If a check fails.
    """
    meaning = Meaning(pair.func())
    try:
        if pair.is_thorough:
            meaning.hold_texts(schedule)
        else:
            meaning.hold_form(schedule)
        return meaning.hold_built(schedule)
    except Exception as error:
        raise FailureError(pair, _kind(error), _traceback(error)) from error


def shrink(failure: FailureError, max_secs: float = 60.0) -> FailureError:
    """Return a failure of the same kind with fewer steps."""
    if failure.kind == KILLED:
        return failure
    deadline = time.monotonic() + max_secs
    size = max(1, len(failure.pair.steps) // 2)
    while size and time.monotonic() < deadline:
        start = 0
        while start < len(failure.pair.steps) and time.monotonic() < deadline:
            steps = failure.pair.steps
            fewer = _failure_of(_with(failure.pair, steps[:start] + steps[start + size :]))
            if fewer is not None and fewer.kind == failure.kind:
                failure = fewer
            else:
                start += size
        size //= 2
    return failure


def _failure_of(pair: Pair) -> FailureError | None:
    try:
        check(pair, redo(pair))
    except FailureError as failure:
        return failure
    return None


def explain(failure: FailureError) -> str:
    """Return Python code that reproduces a failure."""
    pair = failure.pair
    schedule = Schedule(pair.func(), seed=pair.number)
    for step in pair.steps:
        chooser = Chooser(Random(), replayed=list(step.choices))
        try:
            RandomTrace(schedule, chooser).attempt(step.name)
        except Exception:  # the printed code reproduces it
            break
    return (
        f"# pair {pair.number} of seed {pair.seed} ({pair.workload}): {failure.kind}\n"
        f"import loopwright as lw\n\n"
        f'sch = lw.Schedule(lw.parse("""\n{pair.func().script()}"""))\n'
        f"{schedule.trace.simplified().python()}"
        f"# {failure.seen.strip().replace(chr(10), chr(10) + '# ')}\n"
    )


def run_pairs(seed: int, numbers: Sequence[int]) -> tuple[Counts, list[FailureError]]:
    """Make pairs and check them."""
    counts = Counts()
    failures = []
    for number in numbers:
        try:
            pair, schedule = make_pair(seed, number, counts)
            counts.unbuilt += not check(pair, schedule)
        except FailureError as failure:
            failures.append(failure)
    return counts, failures


def run_in_parallel(
    seed: int, numbers: Sequence[int], max_failures: int = 5, jobs: int | None = None
) -> tuple[Counts, list[FailureError]]:
    """Make and check pairs on all cores, until `max_failures` have failed."""
    chunks = [numbers[start : start + 50] for start in range(0, len(numbers), 50)]
    counts = Counts()
    failures: list[FailureError] = []
    with _pool(jobs) as pool:
        running = [pool.submit(run_pairs, seed, chunk) for chunk in chunks]
        for chunk, future in zip(chunks, running, strict=True):
            try:
                more, failed = future.result()
            except BrokenProcessPool:
                more, failed = _run_apart(seed, chunk)
            counts.add(more)
            failures += failed
            failing = ", ".join(str(failure.pair.number) for failure in failures)
            progress = f"{chunk[-1] + 1} pairs, {len(failures)} failed{failing and f': {failing}'}"
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{progress} ")
            elif (chunk[-1] + 1) % LOGGED_PAIRS == 0:
                sys.stderr.write(f"{progress}\n")
                sys.stderr.flush()
            if len(failures) >= max_failures:
                pool.shutdown(cancel_futures=True)
                break
    return counts, failures


def _run_apart(seed: int, numbers: Sequence[int]) -> tuple[Counts, list[FailureError]]:
    """Run pairs again, one of which killed its process, and find it."""
    try:
        with _pool(1) as pool:
            return pool.submit(run_pairs, seed, numbers).result()
    except BrokenProcessPool:
        middle = len(numbers) // 2
    if middle == 0:
        # Making a pair does not run it, so it cannot kill this process.
        pair, _ = make_pair(seed, numbers[0], Counts())
        return Counts(), [FailureError(pair, KILLED, "")]
    counts, failures = _run_apart(seed, numbers[:middle])
    more, failed = _run_apart(seed, numbers[middle:])
    counts.add(more)
    return counts, failures + failed


def _pool(jobs: int | None) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-3))


def show(counts: Counts) -> None:
    """Print how often each primitive was accepted."""
    table = Table(title="primitives tried", box=SIMPLE_HEAD)
    for name in ("primitive", "accepted", "refused", "acceptance"):
        table.add_column(name, justify="left" if name == "primitive" else "right")
    for name in sorted(STEPS):
        accepted, refused = counts.accepted[name], counts.refused[name]
        share = f"{accepted / (accepted + refused):.0%}" if accepted + refused else "-"
        table.add_row(name, str(accepted), str(refused), share)
    total = counts.accepted.total(), counts.refused.total()
    table.add_row("all", *(str(n) for n in total), f"{counts.acceptance:.0%}")
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    console.print(f"not built, for their threads or pipelines: {counts.unbuilt} pairs")


def main() -> int:
    """Run pairs on all cores; return an exit code of 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="the number of one pair")
    parser.add_argument("--failures", type=int, default=5, help="stop after so many")
    parser.add_argument("--jobs", type=int, default=None)
    args = parser.parse_args()
    sys.stdout.write(f"seed {args.seed}\n")
    numbers = range(args.pairs) if args.only is None else (args.only,)
    counts, failures = run_in_parallel(args.seed, numbers, args.failures, args.jobs)
    for failure in failures:
        sys.stdout.write(explain(shrink(failure)) + "\n")
    show(counts)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
