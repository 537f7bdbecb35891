"""Our backends for a worker process: default and tuned kernels, and the machine's ceiling."""

from __future__ import annotations

import loopwright as lw
from benchmarks.kernels.ceiling import ceiling
from benchmarks.kernels.traces import load_tuned, program
from benchmarks.peers.library import Ceiling, Prepared
from benchmarks.workloads import BenchmarkWorkload, aligned
from compiler.driver import toolchain
from compiler.ir.interpret.oracle.oracle import compare, interpret

_threads = 1


def start(threads: int) -> dict[str, str]:
    """Set the number of threads; return versions."""
    global _threads  # noqa: PLW0603 - a process has one
    _threads = threads
    return {"loopwright": toolchain()}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared | Ceiling:
    """Prepare a workload for the backend "default", "tuned", "tuned@SEED" or "ceiling".

    Raises:
        NotTunedError: If there is no tuned schedule.
        ScheduleError: If it no longer applies.
    """
    target = lw.Target(f"cpu -num-cores={_threads}")
    if backend == "ceiling":
        return ceiling(workload, target)
    func = program(workload)
    if backend == "default":
        return _prepared(workload, func, lw.build(func, target), "")
    tuned = load_tuned(workload, _threads, backend)
    note = f"{tuned.trials} trials, sketch {tuned.sketch}"
    return _prepared(workload, func, lw.build(tuned.trace.apply_to(func), target), note)


def _prepared(
    workload: BenchmarkWorkload, func: lw.PrimFunc, module: lw.Module, note: str
) -> Prepared:
    inputs, out = workload.inputs(), aligned(workload.out)

    def check() -> None:
        names = [param.name for param in module.params]
        expected = interpret(func, dict(zip(names, inputs, strict=False)))
        compare(func, {names[-1]: out}, expected)

    return Prepared(module.bind(*inputs, out), lambda: out, check, note)
