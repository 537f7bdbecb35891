"""Random pairs of an operator and a GPU schedule in any number: `make fuzz-cuda`.

Each pair is drawn from the space of one GPU, compiled by NVRTC for all architectures of `GPUS`, run
in the emulator for its own, and compared with the oracle of the unscheduled program. It follows
from a seed and its number. A failing pair is printed as Python code, with the command that repeats
it. The summary counts pairs by sketch and operator.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from compiler.backends.backend import backend_of
from compiler.backends.error import BuildError
from compiler.backends.host_arrays import HostArrays
from compiler.driver import build
from compiler.ir.interpret.error_growth import check_case
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.runtime.kernel_params import params_of
from compiler.schedule.error import ScheduleError
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import GPUS as MODELS
from tests.property.generators.gpu_schedules import GpuPair, draw_pair
from tests.property.generators.gpu_workloads import ROUND

GPUS = ("a100", "h200", "rtx-pro-6000")
"""GPUs of the architectures sm_80, sm_90a and sm_120; pairs are drawn for them in turn."""
_CHUNK = 6
"""Pairs of a task of a worker: some seconds."""


@dataclass(frozen=True)
class CheckedPair:
    """A pair that was checked.

    Attributes:
        sketch: The name of its sketch.
        operator: The name of its operator.
        failure: Python code that reproduces its failure; None if it is correct.
    """

    sketch: str
    operator: str
    failure: str | None = None


def target_of(number: int) -> CudaTarget:
    """Return the emulated GPU of a pair."""
    return CudaTarget(f"cuda -gpu={GPUS[number % len(GPUS)]} -emulated")


def check(pair: GpuPair, target: CudaTarget) -> None:
    """Run the kernel of a pair in the emulator, and compare its result with the oracle's.

    Raises:
        BuildError: If it can't be built.
        KernelFaultError: If the emulator finds a fault.
        WrongResultError: If the result is wrong.
    """
    case = check_case(pair.func, pair.number)
    arrays = HostArrays(pair.func, case)
    module = build(pair.schedule, target)
    try:
        module(*arrays.fresh_arrays())
        arrays.check()
    finally:
        module.close()


def compile_for_others(pair: GpuPair, target: CudaTarget) -> None:
    """Compile a pair for the architectures of the other GPUs, unless their limits refuse it.

    Raises:
        BuildError: If NVRTC rejects its text.
    """
    for gpu in GPUS:
        if MODELS[gpu].arch != target.arch:
            func, other = pair.schedule.func, CudaTarget(f"cuda -gpu={gpu}")
            backend = backend_of(other)
            try:
                source = backend.emit(func, other)
            except BuildError:
                continue
            params = params_of(func.buffers, stored_buffers(func.body))
            backend.compile(func.name, params, source, other)


def explain(number: int, pair: GpuPair | None, seed: int, target: CudaTarget, seen: str) -> str:
    """Return Python code that reproduces a failure; without a pair, the one that can't be drawn."""
    command = f'# make fuzz-cuda ARGS="--seed {seed} --only {number}"\n'
    if pair is None:
        code = f"draw_pair({seed}, {number}, CudaTarget({target.name!r}))"
        return f"{command}# {code} of tests.property.generators.gpu_schedules\n{seen}"
    return (
        f"{command}# {pair} of seed {seed}, for {target.name}\n"
        f"import loopwright as lw\n\n"
        f'sch = lw.Schedule(lw.parse("""\n{pair.func.script()}"""))\n'
        f"{pair.schedule.trace.simplified().python()}"
        f"print(lw.inspect(sch, {target.name!r}))\n"
        f"# {seen.strip().replace(chr(10), chr(10) + '# ')}\n"
    )


def run_pairs(seed: int, numbers: Sequence[int]) -> list[CheckedPair]:
    """Draw pairs, and check them."""
    checked = []
    for number in numbers:
        target = target_of(number)
        pair: GpuPair | None = None
        failure = None
        try:
            pair = draw_pair(seed, number, target)
            check(pair, target)
            compile_for_others(pair, target)
        except ScheduleError:  # a primitive refuses the decisions: a search drops them
            checked.append(CheckedPair("refused", ROUND[number % len(ROUND)]))
            continue
        except Exception as error:
            seen = "".join(traceback.format_exception(error, limit=-3))
            failure = explain(number, pair, seed, target, seen)
        names = (pair.sketch, pair.operator) if pair else ("not drawn", "unknown")
        checked.append(CheckedPair(*names, failure))
    return checked


def run_in_parallel(
    seed: int, numbers: Sequence[int], jobs: int | None = None
) -> Iterator[list[CheckedPair]]:
    """Yield the latest pairs."""
    chunks = [numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(run_pairs, seed, chunk) for chunk in chunks]
        try:
            for future in running:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def summary(pairs: Sequence[CheckedPair]) -> str:
    """Return the numbers of pairs by sketch, and in each by operator."""
    lines = []
    for sketch, count in Counter(pair.sketch for pair in pairs).most_common():
        operators = Counter(pair.operator for pair in pairs if pair.sketch == sketch)
        of_operators = ", ".join(f"{name} {n}" for name, n in operators.most_common())
        lines.append(f"{count:5} {sketch}: {of_operators}\n")
    num_failed = sum(pair.failure is not None for pair in pairs)
    return "".join(lines) + f"{len(pairs)} pairs, {num_failed} failed\n"


def main() -> int:
    """Run pairs on all cores; return an exit code of 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make fuzz-cuda", description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int, help="the number of a single pair")
    parser.add_argument("--failures", type=int, default=5, help="stop after so many")
    parser.add_argument("--jobs", type=int, default=None)
    args = parser.parse_args()
    sys.stdout.write(f"seed {args.seed}\n")
    numbers = range(args.pairs) if args.only is None else (args.only,)
    checked: list[CheckedPair] = []
    num_failed = 0
    for latest in run_in_parallel(args.seed, numbers, args.jobs):
        checked += latest
        for failure in filter(None, (pair.failure for pair in latest)):
            num_failed += 1
            sys.stdout.write(failure + "\n")
            sys.stdout.flush()
        sys.stderr.write(f"{len(checked)} of {len(numbers)} pairs, {num_failed} failed\n")
        if num_failed >= args.failures:
            break
    sys.stdout.write(summary(checked))
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
